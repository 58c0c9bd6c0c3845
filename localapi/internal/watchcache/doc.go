// Package watchcache keeps the decoded objects of a resource, current and recent, above the byte store.
//
// A [Collection] follows the store's history with one watch of its own. Nobody is told to do so: whoever reads or
// writes brings the collection up to date first ([Collection.Sync]), so a read sees every write that returned before it
// began, and no goroutine is needed. What the writers of this process stored arrives already decoded, as the tag of the
// stored record; the rest (after reopening a store) is decoded here, once.
//
// Watches are cursors into the collection's log of events. They share the log and hold no buffer, so a slow one costs
// nothing and delays nobody; one that falls behind the compacted part of the log is told that its position has expired.
package watchcache
