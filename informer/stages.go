package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// The names of the stages that users of an informer meet. Each is described at its stage.

// Object is what an informer can hold: anything with object metadata.
type Object = objects.Object

// ObjectState names one state of one object; see [ListOptions].
type ObjectState = objects.State

// DecodeError reports that the server sent something that is not an object of the resource.
type DecodeError = objects.DecodeError

// Key is the name of obj within its resource: "namespace/name", or "name" for a cluster-scoped object.
func Key(obj metav1.Object) string { return objects.Key(obj) }

// KeyOf is the [Key] of the object with that namespace ("" when cluster-scoped) and name.
func KeyOf(namespace, name string) string { return objects.KeyOf(namespace, name) }

// The log between reflector and cache; see package deltafifo.
type (
	// DeltaFIFO is the ordered log between a reflector and the cache.
	DeltaFIFO[T any] = deltafifo.DeltaFIFO[T]
	// Delta is one thing learnt about the resource.
	Delta[T any] = deltafifo.Delta[T]
)

// The types of deltas, and AcceptAll for callers that write into a cache themselves.
const (
	DeltaUpsert   = deltafifo.Upsert
	DeltaDelete   = deltafifo.Delete
	DeltaReplace  = deltafifo.Replace
	DeltaBookmark = deltafifo.Bookmark
	DeltaResync   = deltafifo.Resync
	AcceptAll     = deltafifo.AcceptAll
)

// NewDeltaFIFO returns an empty log.
func NewDeltaFIFO[T any]() *DeltaFIFO[T] { return deltafifo.New[T]() }

// The cache; see package indexer.
type (
	// Indexer is the cache: objects by key, indexes over them, and the watermark up to which they are complete.
	Indexer[T any] = indexer.Indexer[T]
	// IndexerOptions configure an [Indexer].
	IndexerOptions = indexer.Options
	// IndexFunc gives the values under which an index finds an object: none, one or many.
	IndexFunc[T any] = indexer.IndexFunc[T]
	// Snapshot is the cache at one resource version.
	Snapshot[T any] = indexer.Snapshot[T]
)

var (
	// ErrNoIndex reports that the informer has no index of that name.
	ErrNoIndex = indexer.ErrNoIndex
	// ErrIndexExists reports that the informer already has an index of that name.
	ErrIndexExists = indexer.ErrIndexExists
)

// NewIndexer returns an empty cache. key names an object within it; nil is its [Key], found without an allocation.
func NewIndexer[T any](key func(T) (string, error), o IndexerOptions) *Indexer[T] {
	return indexer.New(key, o)
}

// MetaKey is [Key] in the form that [NewIndexer] takes.
func MetaKey[T metav1.Object](obj T) (string, error) { return Key(obj), nil }

// LabelIndex is the name of an index by the values of one label. Where a cache has one, List looks only at the objects
// that the index finds.
func LabelIndex(key string) string { return indexer.LabelIndex(key) }

// ByLabel is the function of a [LabelIndex].
func ByLabel[T metav1.Object](key string) IndexFunc[T] { return indexer.ByLabel[T](key) }

// Handlers; see package fanout.
type (
	// Handler is told what changes. A nil function is not called; the zero Handler is valid and useless.
	Handler[T any] = fanout.Handler[T]
	// Deleted is an object that is gone.
	Deleted[T any] = fanout.Deleted[T]
	// HandlerOptions say how a handler is served. The zero value works.
	HandlerOptions = fanout.HandlerOptions
	// Registration is a handler in an informer.
	Registration = fanout.Registration
	// HandlerStats counts what a handler was given.
	HandlerStats = fanout.HandlerStats
	// PanicPolicy decides what becomes of a panic in a handler.
	PanicPolicy = fanout.PanicPolicy
	// UndeliveredError reports that a handler was removed before it was told everything.
	UndeliveredError = fanout.UndeliveredError
)

const (
	// ContainPanics logs the panic with its stack, counts it, and goes on with the next notification.
	ContainPanics = fanout.ContainPanics
	// CrashOnPanic lets it end the process.
	CrashOnPanic = fanout.CrashOnPanic
)

// ErrStopped reports that the informer's Run has ended: it cannot be used again for what was asked.
var ErrStopped = fanout.ErrStopped

// The server's side; see package listwatch.
type (
	// ListerWatcher is the server's side of an informer: one resource, in one namespace or all, through one selection.
	ListerWatcher[T any] = listwatch.ListerWatcher[T]
	// Watch is an open stream of changes.
	Watch[T any] = listwatch.Watch[T]
	// Event is one change of one object, or a bookmark.
	Event[T any] = listwatch.Event[T]
	// EventType is the kind of an [Event].
	EventType = listwatch.EventType
	// ListOptions choose a list.
	ListOptions = listwatch.ListOptions
	// ListResult is what a page of a list reports of itself.
	ListResult = listwatch.ListResult
	// WatchOptions choose where a watch begins.
	WatchOptions = listwatch.WatchOptions
	// RESTOptions choose what a [RESTListerWatcher] lists.
	RESTOptions = listwatch.RESTOptions
	// RESTListerWatcher lists and watches a resource of a Kubernetes API.
	RESTListerWatcher[T Object] = listwatch.RESTListerWatcher[T]
	// UnknownKindError reports that the server does not serve a kind.
	UnknownKindError = listwatch.UnknownKindError
)

// The kinds of events.
const (
	Added    = listwatch.Added
	Modified = listwatch.Modified
	Removed  = listwatch.Removed
	Bookmark = listwatch.Bookmark
)

// ErrNotSharded reports that a list was not restricted to a shard although it was asked to be.
var ErrNotSharded = listwatch.ErrNotSharded

// NewRESTListerWatcher returns a ListerWatcher over client, of which only the transport and base URL are used.
func NewRESTListerWatcher[T Object](client rest.Interface, o RESTOptions) *RESTListerWatcher[T] {
	return listwatch.NewRESTListerWatcher[T](client, o)
}

// What a failed request means; see package connection.
type (
	// RequestError is a failed list or watch, worded for the person who has to do something about it.
	RequestError = connection.RequestError
	// TransformError reports that Options.Transform failed on an object.
	TransformError = connection.TransformError
)

// Listing and watching, whatever the server does; see package reflector.
type (
	// Reflector follows one resource, and appends what it learns to a [DeltaFIFO].
	Reflector[T any] = reflector.Reflector[T]
	// ReflectorOptions configure a [Reflector].
	ReflectorOptions[T any] = reflector.Options[T]
	// Backoff is how long a reflector waits after failures. The zero value means the defaults.
	Backoff = reflector.Backoff
)

// NewReflector returns a reflector that appends to fifo.
func NewReflector[T any](lw ListerWatcher[T], fifo *DeltaFIFO[T], o ReflectorOptions[T]) *Reflector[T] {
	return reflector.New(lw, fifo, o)
}
