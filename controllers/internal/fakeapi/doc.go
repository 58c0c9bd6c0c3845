// Package fakeapi puts a fake clientset of client-go behind a [client.Cluster], for tests of controllers that
// decide themselves what the server answers.
package fakeapi
