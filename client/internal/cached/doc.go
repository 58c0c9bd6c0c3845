// Package cached has the caches of a client: one for each kind, and for each Go form of the kind's objects. It reads
// them as they are. Package client adds the own writes that a cache does not show yet.
//
// Reading order: caches.go, which makes a cache when its kind is read for the first time; cache.go, one cache;
// query.go, a read of it; store.go, the informer behind it.
package cached
