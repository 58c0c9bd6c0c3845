package reflector

import (
	"context"
	"errors"
	"time"
)

// Object is an object of the server.
type Object struct {
	Name    string
	Version int
}

// List has all objects at one version.
type List struct {
	Objects []Object
	Version int
}

// Event is a change. Type is ADDED, MODIFIED, DELETED or BOOKMARK. The object of a bookmark has only a version.
type Event struct {
	Type   string
	Object Object
}

// Two special versions of a request for a list. Any other version means a list that is not older.
const (
	AnyAge = 0
	Newest = -1
)

// The errors of a server. There are also [*BusyError], io.EOF and the errors of broken connections.
var (
	// ErrGone is the answer 410: the server does not have that version any more.
	ErrGone = errors.New("410: too old resource version")
	// ErrAhead is the answer 504: the server has not reached that version yet.
	ErrAhead = errors.New("504: too large resource version")
)

// BusyError is the answer 429.
type BusyError struct {
	// RetryAfter is how long the client must wait before the next request.
	RetryAfter time.Duration
}

func (e *BusyError) Error() string { return "429: retry after " + e.RetryAfter.String() }

// Server has the objects. Its methods return an error when ctx is done.
type Server interface {
	// List returns all objects. version is AnyAge, Newest or the oldest version that will do.
	List(ctx context.Context, version int) (List, error)
	// Watch opens a stream of the changes after version. The server ends it after the timeout.
	Watch(ctx context.Context, version int, timeout time.Duration) (Watch, error)
}

// Watch is a stream of changes.
type Watch interface {
	// Next waits for the next event. It returns io.EOF when the server has ended the stream.
	Next(ctx context.Context) (Event, error)
	// Close ends the stream and frees its connection.
	Close()
}

// Cache receives the objects.
type Cache interface {
	// Replace sets the content of the cache. Objects that are not in the list are gone.
	Replace(all List)
	// Apply applies a change. It is not called for bookmarks.
	Apply(e Event)
}
