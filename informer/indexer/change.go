package indexer

// ChangeType is what a [Change] says.
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
	// Initial marks an Add by the first list.
	Initial bool
	// Stale marks a Delete that was concluded from a list, not seen.
	Stale bool
	Key   string
	// Old is the state before; unset for Add.
	Old T
	// New is the state after; for Delete the last known state, from the deletion's event if there was one.
	New T
}

// Applied is what became of a batch.
type Applied[T any] struct {
	// Changes is in the order of the batch. Nobody changes it any more.
	Changes []Change[T]
	// FirstSync says that with this batch each scope has been listed for the first time.
	FirstSync bool
	// Resync reports whether the batch ended with a [deltafifo.Resync]. Nothing may follow it in a batch.
	Resync bool
	// IndexErr is the error of an object that the index functions failed on while they had succeeded on all before;
	// nil otherwise.
	IndexErr error
	// Duplicates counts events that told nothing new, Outdated objects that the cache had newer.
	Duplicates, Outdated int
}
