// Package watchcache holds the decoded objects of a resource, current and recent, above the byte store.
//
// A [Collection] follows the store's history with one watch of its own. It needs no goroutine: every reader and writer
// first brings the collection up to date ([Collection.Sync]), so a read sees every write that returned before the read
// began. What the writers of this process stored arrives already decoded, as the tag of the stored record. The rest
// (after a store was reopened) is decoded here, once.
//
// Watches are cursors into the collection's log of events. They share the log and hold no buffer, so a slow one costs
// nothing and delays nobody. One that falls behind the compacted part of the log gets [ErrExpired].
package watchcache
