// Package caches compares the caches of an informer factory with what the server answered to this process.
//
// Package writes has two questions. Does every cache show a write by now ([Set.Show], [Set.WillShow])? And did a cache
// pass the state that an answer described without ever showing it ([Set.Expect])?
//
// Reading order: caches.go, then expected.go.
package caches
