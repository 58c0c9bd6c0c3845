package listwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/objects"
)

// Object is what can be listed and watched: anything with object metadata.
type Object = objects.Object

// ObjectState names one state of one object; see [ListOptions].
type ObjectState = objects.State

// DecodeError reports that the server sent something that is not an object of the resource.
type DecodeError = objects.DecodeError

// ListerWatcher is the server's side of an informer: one resource, in one namespace or all, through one selection.
// [NewRESTListerWatcher] makes one for a Kubernetes API.
//
// It is pull-based: the informer asks for the next object when it has dealt with the one before, so a slow informer
// slows the connection, and no goroutine or channel stands between the two.
//
// Concurrency: a reflector calls List and Watch one at a time, but adapters may share one ListerWatcher among
// reflectors: implementations must be safe for concurrent use.
type ListerWatcher[T any] interface {
	// List calls yield with each object of one page, and returns what stands in the list's own metadata. It stops at
	// the first error yield returns, and returns that. An implementation without paging ignores Limit and returns an
	// empty Continue.
	//
	// Errors: API errors as *errors.StatusError; a [DecodeError] when the server's answer made no sense.
	List(ctx context.Context, o ListOptions, yield func(T) error) (ListResult, error)
	// Watch opens a stream of changes. The stream ends at the latest when ctx is done.
	//
	// Errors: as List.
	Watch(ctx context.Context, o WatchOptions) (Watch[T], error)
}

// Watch is an open stream of changes.
type Watch[T any] interface {
	// Next blocks until the next event.
	//
	// Errors: io.EOF when the server ended the stream in good order; an *errors.StatusError that the server sent as
	// an ERROR event; a [DecodeError]; any other error is a broken connection. After an error the stream is over.
	Next(ctx context.Context) (Event[T], error)
	// Close ends the stream and frees its connection. It is idempotent.
	Close() error
}

// ListOptions say which list is wanted.
type ListOptions struct {
	// ResourceVersion bounds the age of the list: "" is the newest, "0" is any age, another value by Match.
	ResourceVersion string
	// Match is how ResourceVersion is meant; empty for "" and "0".
	Match metav1.ResourceVersionMatch
	// Limit is the number of objects in a page; 0 asks for all at once.
	Limit int64
	// Continue is the token of the page before; ResourceVersion is then empty.
	Continue string
	// Unreadable, when set, is called instead of yield for an object that exists and cannot be decoded, if at least
	// its key could be read: one object must not keep all others from being listed. nil makes the list fail.
	Unreadable func(*objects.DecodeError)
	// Held, when set, is asked about each object before it is decoded, whether the caller has it in that very
	// state. Such an object is not yielded. An implementation may ignore it.
	Held func(objects.State) bool
	// Exclusive says that the caller is going to change the objects: none may share memory with another.
	Exclusive bool
}

// ListResult is what a page of a list says about itself.
type ListResult struct {
	// ResourceVersion is the version at which the list was taken; the same for each page.
	ResourceVersion string
	// Continue is the token of the next page; "" when this was the last.
	Continue string
}

// WatchOptions say where a watch begins.
type WatchOptions struct {
	// ResourceVersion is the last one seen: the stream begins behind it.
	ResourceVersion string
	// SendInitialEvents asks for the current objects as Added events, ended by a bookmark with InitialEventsEnd,
	// before the changes. With an empty ResourceVersion the objects are the newest.
	//
	// Source: KEP-3157, streaming lists.
	SendInitialEvents bool
	// Held is as in [ListOptions], for initial events: instead of not being yielded, such an event is marked Held.
	Held func(objects.State) bool
	// Exclusive is as in [ListOptions].
	Exclusive bool
	// Timeout is how long the server should keep the stream open; 0 leaves it to the server.
	Timeout time.Duration
}

// EventType is the kind of an [Event].
type EventType string

// The kinds of events. What the server sends as ERROR is an error of [Watch].Next, not an event.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Removed  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
)

// Event is one change of one object, or a bookmark.
type Event[T any] struct {
	Type EventType
	// Object is the new state, for Removed the last. For a Bookmark it has no meaning.
	Object T
	// ResourceVersion is the position of the event in the server's history.
	ResourceVersion string
	// InitialEventsEnd marks the Bookmark after the last initial event; see WatchOptions.SendInitialEvents.
	InitialEventsEnd bool
	// Held says that WatchOptions.Held said so of the object, at once before. Object is then not set.
	Held bool
	// Unreadable, when set, says why the object could not be decoded, and which it is. Object is then not set.
	Unreadable *objects.DecodeError
}
