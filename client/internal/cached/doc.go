// Package cached has the caches of a client: for each kind, and each form of its objects, an informer and what it is
// asked by. It knows nothing of own writes, but for the place where they are recorded.
//
// Reading order: caches.go, which makes a cache when its kind is read for the first time; cache.go, one cache;
// query.go, what a read asks it; store.go, the informer behind it.
package cached
