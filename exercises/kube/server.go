package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Two special versions of a request for a list. Any other version means a list that is not older.
const (
	AnyAge = 0
	Newest = -1
)

// Server has the objects of one kind. Its methods return an error when ctx is done.
type Server interface {
	// List returns all objects. version is AnyAge, Newest or the oldest version that will do.
	List(ctx context.Context, version int) (List, error)
	// Watch opens a stream of the changes after version. The server ends it after the timeout.
	Watch(ctx context.Context, version int, timeout time.Duration) (Watch, error)
}

// List has all objects at one version.
type List struct {
	Objects []*Object
	Version int
}

// Watch is a stream of changes.
type Watch interface {
	// Next waits for the next event. It returns io.EOF when the server has ended the stream, and an error when the
	// context is done with which the stream was opened.
	Next() (Event, error)
	// Close ends the stream and frees its connection.
	Close()
}

// The errors of a server. There are also [*BusyError], io.EOF and the errors of broken connections.
var (
	ErrNotFound = errors.New("404: there is no such object")
	ErrExists   = errors.New("409: there is an object of that name")
	ErrConflict = errors.New("409: the object has changed since you read it")
	// ErrGone means that the server does not have that version any more.
	ErrGone = errors.New("410: too old resource version")
	// ErrAhead means that the server has not reached that version yet.
	ErrAhead = errors.New("504: too large resource version")
)

// BusyError is the answer 429.
type BusyError struct {
	// RetryAfter is how long the client must wait before the next request.
	RetryAfter time.Duration
}

func (e *BusyError) Error() string { return "429: retry after " + e.RetryAfter.String() }

// Status is the body of an answer that is an error. [json.Unmarshal] reads it.
type Status struct {
	Code            int
	Reason, Message string
	Details         struct{ RetryAfterSeconds int }
}

// Err returns the error.
func (s Status) Err() error {
	switch {
	case s.Code == http.StatusNotFound:
		return ErrNotFound
	case s.Code == http.StatusConflict && s.Reason == "AlreadyExists":
		return ErrExists
	case s.Code == http.StatusConflict:
		return ErrConflict
	case s.Code == http.StatusGone:
		return ErrGone
	case s.Code == http.StatusTooManyRequests:
		return &BusyError{RetryAfter: time.Duration(s.Details.RetryAfterSeconds) * time.Second}
	case s.Code == http.StatusGatewayTimeout && strings.HasPrefix(s.Message, "Too large resource version"):
		return ErrAhead
	}
	return fmt.Errorf("%d: %s", s.Code, s.Message)
}

// Cache receives the objects of a server.
type Cache interface {
	// Replace sets the content of the cache. Objects that are not in the list are gone.
	Replace(all List)
	// Apply applies a change. It is not called for bookmarks.
	Apply(e Event)
}

// Store is the simplest Cache: a map. It has no lock.
type Store struct {
	// Objects has the objects by key.
	Objects map[string]*Object
	// Version is the version up to which the Store has every change.
	Version int
}

// NewStore returns a Store with these objects, at the highest of their versions.
func NewStore(objects ...*Object) *Store {
	s := &Store{Objects: map[string]*Object{}}
	for _, o := range objects {
		s.Apply(Event{Added, o})
	}
	return s
}

// Replace implements [Cache].
func (s *Store) Replace(all List) {
	*s = *NewStore(all.Objects...)
	s.Version = all.Version
}

// Apply implements [Cache]. A bookmark only moves the version.
func (s *Store) Apply(e Event) {
	switch e.Type {
	case Bookmark:
	case Deleted:
		delete(s.Objects, e.Object.Key())
	default:
		s.Objects[e.Object.Key()] = e.Object
	}
	s.Version = max(s.Version, e.Object.Version)
}

// List returns the content, in the order of the keys.
func (s *Store) List() List {
	all := List{Version: s.Version}
	for _, key := range slices.Sorted(maps.Keys(s.Objects)) {
		all.Objects = append(all.Objects, s.Objects[key])
	}
	return all
}
