// Package indexer is the cache: the objects of a resource by key, indexes over them, and the resource version up to
// which they are complete.
//
// List and ByIndex return slices that belong to their callers, and most of their time goes into allocating these. All
// and AllByIndex copy nothing; use them in loops.
//
// Read indexer.go, what readers use; apply.go, the only way in, which turns a batch of deltas into the changes of
// change.go; replace.go, how it applies a complete list; index.go, how the objects under one value of an index are kept
// as a slice. A first reading can skip labelindex.go and snapshot.go: lists by label, and reads at one resource
// version.
package indexer
