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

// List is all objects at one version.
type List struct {
	Objects []Object
	Version int
}

// Event is a change. Type is ADDED, MODIFIED, DELETED or BOOKMARK. The object of a bookmark has nothing but a version.
type Event struct {
	Type   string
	Object Object
}

// Versions to ask a list for. Any other is "not older than this".
const (
	AnyAge = 0
	Newest = -1
)

// The errors of a server, beside [*BusyError], io.EOF and those of broken connections.
var (
	// ErrGone is 410: the server does not have that version any more.
	ErrGone = errors.New("410: too old resource version")
	// ErrAhead is 504: the server has not got to that version yet.
	ErrAhead = errors.New("504: too large resource version")
)

// BusyError is 429.
type BusyError struct {
	// RetryAfter is how long the server wants to be left alone.
	RetryAfter time.Duration
}

func (e *BusyError) Error() string { return "429: retry after " + e.RetryAfter.String() }

// Server has the objects. Its methods return an error when ctx is done.
type Server interface {
	// List returns all objects, of a version.
	List(ctx context.Context, version int) (List, error)
	// Watch opens a stream of the changes after a version. The server ends it after the timeout.
	Watch(ctx context.Context, version int, timeout time.Duration) (Watch, error)
}

// Watch is a stream of changes.
type Watch interface {
	// Next waits for the next event. It returns io.EOF when the server has ended the stream in good order.
	Next(ctx context.Context) (Event, error)
	// Close gives the connection back.
	Close()
}

// Cache is where the changes go.
type Cache interface {
	// Replace is told of a list: what it does not have is gone.
	Replace(all List)
	// Apply is told of a change, and not of bookmarks.
	Apply(e Event)
}
