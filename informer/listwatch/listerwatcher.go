package listwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/objects"
)

// ListerWatcher lists and watches one resource, in one namespace or all, with one selection. [NewRESTListerWatcher]
// returns one for a Kubernetes API.
//
// It is pull-based: the informer asks for the next object when it has dealt with the last one. A slow informer thus
// slows down the connection, and no goroutine or channel is needed between the two.
//
// Concurrency: implementations must be safe for concurrent use. One reflector calls List and Watch one at a time, but
// adapters may share a ListerWatcher among reflectors.
type ListerWatcher[T any] interface {
	// List calls yield for each object of one page, and returns the list's own metadata. If yield returns an error List
	// stops and returns it. An implementation without paging ignores Limit and returns an empty Continue.
	//
	// Errors: API errors as *errors.StatusError; an [objects.DecodeError] if the answer is not valid.
	List(ctx context.Context, o ListOptions, yield func(T) error) (ListResult, error)
	// Watch opens a stream of changes. It ends when ctx is done, if not before.
	//
	// Errors: as List.
	Watch(ctx context.Context, o WatchOptions) (Watch[T], error)
}

// Watch is an open stream of changes.
type Watch[T any] interface {
	// Next blocks until the next event.
	//
	// Errors: io.EOF when the server ended the stream in good order; an *errors.StatusError that the server sent as an
	// ERROR event; an [objects.DecodeError]. Any other error means a broken connection. After an error the stream is
	// over.
	Next(ctx context.Context) (Event[T], error)
	// Close ends the stream and frees its connection. It is idempotent.
	Close() error
}

// ListOptions are the parameters of a list.
type ListOptions struct {
	// ResourceVersion limits the age of the list: "" means the newest, and "0" any age. The meaning of another value
	// depends on Match.
	ResourceVersion string
	// Match is how ResourceVersion is compared. It is empty for "" and "0".
	Match metav1.ResourceVersionMatch
	// Limit is the number of objects in a page; 0 means no limit.
	Limit int64
	// Continue is the token from the previous page. ResourceVersion is then empty.
	Continue string
	// Unreadable is called instead of yield for an object that cannot be decoded, if at least its key could be read, so
	// that one object does not keep all others from being listed. If Unreadable is nil the list fails.
	Unreadable func(*objects.DecodeError)
	// Held, if not nil, is called for each object before it is decoded, and reports whether the caller has it in
	// exactly this state. Such an object is not yielded. An implementation may ignore Held.
	Held func(objects.State) bool
	// Exclusive means that the caller will modify the objects, so no two of them may share memory.
	Exclusive bool
}

// ListResult is the metadata of one page of a list.
type ListResult struct {
	// ResourceVersion is the version at which the list was taken. It is the same for all pages.
	ResourceVersion string
	// Continue is the token for the next page; "" after the last.
	Continue string
}

// WatchOptions are the parameters of a watch.
type WatchOptions struct {
	// ResourceVersion is the last version seen: the stream begins after it.
	ResourceVersion string
	// SendInitialEvents asks for the current objects before the changes. They come as Added events, followed by a
	// bookmark with InitialEventsEnd. With an empty ResourceVersion they are the newest.
	//
	// Source: KEP-3157, streaming lists.
	SendInitialEvents bool
	// Held is as in [ListOptions], for initial events. The events are not left out but marked Held.
	Held func(objects.State) bool
	// Exclusive is as in [ListOptions].
	Exclusive bool
	// Timeout is how long the server should keep the stream open; 0 means that the server decides.
	Timeout time.Duration
}

// EventType is the type of an [Event].
type EventType string

// The types of events. An ERROR event is not among them: [Watch].Next returns it as an error.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Removed  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
)

// Event is one change of one object, or a bookmark.
type Event[T any] struct {
	Type EventType
	// Object is the new state; for Removed, the last state. It is not set for a Bookmark.
	Object T
	// ResourceVersion is the event's position in the server's history.
	ResourceVersion string
	// InitialEventsEnd marks the Bookmark after the last initial event; see WatchOptions.SendInitialEvents.
	InitialEventsEnd bool
	// Held means that WatchOptions.Held has just returned true for the object. Object is then not set.
	Held bool
	// Unreadable is set if the object could not be decoded. Object is then not set.
	Unreadable *objects.DecodeError
}
