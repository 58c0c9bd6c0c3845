// Package indexer is the cache: the objects of a resource by key, indexes over them, and the resource version up to
// which they are complete.
//
// List and ByIndex return slices that belong to their callers; most of their time is the allocation of these. Loops use
// All and AllByIndex, which copy nothing.
//
// Read indexer.go, what readers see; apply.go, the one way in, which turns a batch of deltas into the changes of
// change.go; index.go, how the objects under one value of an index are kept as a slice. labelindex.go and
// snapshot.go are side rooms: lists by label, and reads at one resource version.
package indexer
