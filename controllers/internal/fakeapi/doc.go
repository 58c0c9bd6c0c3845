// Package fakeapi puts the reactors of client-go's fake clientset behind a [client.Cluster], for tests of controllers
// that decide themselves what the server answers. It does without the clientset, which would have to be linked.
package fakeapi
