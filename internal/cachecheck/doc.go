// Package cachecheck compares the caches of an informer factory with what a server answered to this process.
//
// The record of own writes (internal/ownwrites) asks three questions:
//
//   - [Caches.Reflects]: do the caches show a write yet?
//   - [Caches.Expect]: call me if a cache never shows the state that an answer described.
//   - [Caches.Contradicted]: the server says that an object does not exist. Is a cache wrong?
//
// An informer has one [Cache] and tells it of every change. The factory hands its caches out as [Caches].
//
// Reading order: cache.go, a cache and what it selects; reflects.go, expected.go and contradiction.go, the three
// questions.
package cachecheck
