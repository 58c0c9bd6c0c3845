package storage

import (
	"context"
	"errors"
)

// FirstRevision is the revision of a store that was never written to.
const FirstRevision int64 = 1

// NoRevision as the expected revision means that the key must not exist.
const NoRevision int64 = 0

var (
	// ErrNotFound is returned for a key that does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrConflict is returned for a guarded write whose key is not at the expected revision (or exists although it was
	// expected not to). The caller reads again and decides again.
	ErrConflict = errors.New("revision conflict")
	// ErrCompacted is returned for a revision whose history is gone. The caller lists again.
	ErrCompacted = errors.New("revision compacted")
	// ErrFuture is returned for a revision that has not been reached.
	ErrFuture = errors.New("revision in the future")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("storage closed")
)

// Record is the state of a key.
type Record struct {
	Key      string
	Value    []byte // read-only
	Revision int64  // of the write that set Value

	// Tag is [Write].Tag as long as the store still has it in memory, and nil after that. It is never persisted.
	Tag any
}

// Event is one write in the history.
type Event struct {
	// Record is the state after the write. After a delete it has the key and the revision of the delete, and no value.
	Record
	Deleted bool

	// Previous is the state before the write; its Revision is [NoRevision] if the key did not exist.
	Previous Record
}

// Write is a guarded put.
type Write struct {
	Key   string
	Value []byte // owned by the store from here on: the caller must not change it

	// Expected is the revision that the key must be at, or [NoRevision] if it must not exist.
	Expected int64

	// Tag travels with the record to readers and watchers of this process, so that they need not recompute what the
	// writer knows about the value (its decoded form).
	Tag any
}

// ListOptions select what a list returns. The zero value selects everything under the prefix, now.
type ListOptions struct {
	Start    string // the first key to return, inclusive; if "" or before the prefix, the list starts at the beginning
	Limit    int    // the largest number of records to return; 0: all
	Revision int64  // the state as of this revision; 0: now
}

// Page is the result of a list.
type Page struct {
	Records   []Record // sorted by key
	Revision  int64    // the revision of the listed state
	Remaining int64    // number of records after the last one of the page
}

// Storage is a store.
type Storage interface {
	// Get returns the current state of key. Errors: ErrNotFound.
	Get(ctx context.Context, key string) (Record, error)

	// List returns the records whose keys begin with prefix. Errors: ErrCompacted, ErrFuture.
	List(ctx context.Context, prefix string, o ListOptions) (Page, error)

	// Put writes one key and returns the revision of the write. Errors: ErrConflict.
	Put(ctx context.Context, w Write) (int64, error)

	// Delete removes key, which must be at the expected revision, and returns the revision of the removal. Errors:
	// ErrNotFound, ErrConflict.
	Delete(ctx context.Context, key string, expected int64) (int64, error)

	// Watch returns the writes to keys that begin with prefix and whose revision is greater than after, in order.
	// Errors: ErrCompacted, ErrFuture.
	Watch(ctx context.Context, prefix string, after int64) (Watch, error)

	// Compact forgets the history up to and including revision. The current state stays, and so does the state as of
	// that revision. Compacting to a revision that is already compacted does nothing. Errors: ErrFuture.
	Compact(ctx context.Context, revision int64) error

	// Revision returns the revision of the last write, and the revision compacted to (0: nothing was compacted).
	Revision() (current, compacted int64)

	// Close releases the store and ends every watch.
	Close() error
}

// Watch is a position in the history of a prefix. One goroutine at a time may use it.
type Watch interface {
	// Poll returns the events that are there, without waiting, and the revision up to which the history is now known.
	// No later call returns an event at or below that revision. Errors: ErrCompacted, ErrClosed.
	Poll() (events []Event, revision int64, err error)

	// Next blocks until there is at least one event, and then returns what Poll would.
	Next(ctx context.Context) (events []Event, revision int64, err error)

	// Close releases the watch.
	Close()
}
