package indexer

// ChangeType is the type of a [Change].
type ChangeType uint8

// The types of changes.
const (
	ChangeAdd ChangeType = iota
	ChangeUpdate
	ChangeDelete
	// ChangeResync repeats an object that did not change.
	ChangeResync
)

// Change is one difference between two states of the cache.
type Change[T any] struct {
	Type ChangeType
	// Initial marks an Add from the first list.
	Initial bool
	// Stale marks a Delete that was not observed: the object was missing from a list.
	Stale bool
	Key   string
	// Old is the previous state; not set for Add.
	Old T
	// New is the new state. For Delete it is the last known state, if possible that of the deletion's event.
	New T
}

// Applied is the result of [Indexer.Apply].
type Applied[T any] struct {
	// Changes is in the order of the batch. It is immutable.
	Changes []Change[T]
	// FirstSync is true if this batch completed the first list of every scope.
	FirstSync bool
	// Resync is true if the batch ended with a [deltafifo.Resync]. Nothing may follow it in a batch.
	Resync bool
	// Duplicates counts events that changed nothing; Outdated, objects of which the cache had a later state.
	Duplicates, Outdated int
}
