package informer

import (
	"context"
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
	"github.com/flyball-dev/flyball/informer/internal/objects"
)

// Informer is a cache of one resource and the way to hear of its changes. [SharedInformer] is one; [For] gives typed
// views of those a [Factory] shares.
//
// Concurrency: every method may be called at any time from any goroutine, index functions excepted (they run while the
// cache is being written, and may only read).
//
// Objects are shared between the cache, its readers and all handlers: they are read-only. Slices belong to the caller.
type Informer[T objects.Object] interface {
	// AddHandler makes h hear of every object in the cache, as initial adds, and of every change after that. It may be
	// called before, while and long after the informer starts, and holds nobody up.
	//
	// Errors: [ErrStopped].
	AddHandler(h fanout.Handler[T], o fanout.HandlerOptions) (*fanout.Registration, error)
	// RemoveHandler takes no more changes for the handler, and waits until it was told all that happened before. When
	// ctx ends first the rest is dropped and the error, an [UndeliveredError], says how much that was. A handler that
	// removes itself from within must not wait: it passes a ctx that is already done. Removing twice is no error.
	RemoveHandler(ctx context.Context, r *fanout.Registration) error
	// AddIndex adds an index to the cache, filled or not.
	//
	// Errors: when the name is taken.
	AddIndex(name string, f indexer.IndexFunc[T]) error

	// Get returns an object; namespace is "" for cluster-scoped ones.
	Get(namespace, name string) (T, bool)
	// List returns the objects of a namespace ("" is all of them) that sel selects (nil selects all), in no order. A
	// loop over all objects is faster with All, because List allocates a new slice for its caller each time.
	List(namespace string, sel labels.Selector) []T
	// ByIndex returns the objects for which the index function gave value, in no order, in a new slice: see AllByIndex.
	//
	// Errors: [ErrNoIndex].
	ByIndex(name, value string) ([]T, error)
	// All goes through one consistent state of the cache without a copy. The loop may take as long as it likes.
	All() iter.Seq[T]
	// AllByIndex is All for the objects that ByIndex returns. Errors: [ErrNoIndex].
	AllByIndex(name, value string) (iter.Seq[T], error)
	// Snapshot returns the cache as it is now, for several reads that must fit together. Close it.
	Snapshot() indexer.Snapshot[T]
	// ResourceVersion is the watermark: the cache holds everything up to it. "" before the first list. Over several
	// namespaces it is the lowest.
	ResourceVersion() string
	// NamespaceResourceVersion is the watermark of one namespace ("" is as ResourceVersion): "" before its first
	// list, and when the informer does not follow it.
	NamespaceResourceVersion(namespace string) string
	// History numbers the histories of the server: it is that of which the cache holds a namespace ("" is all that
	// the informer follows: the lowest). It rises when the cache was rebuilt because the server's history went back
	// or another server took its place. Resource versions of different histories tell nothing about one another.
	History(namespace string) int64

	// WaitForResourceVersion waits until the cache holds all of a namespace ("" is all that the informer follows) up
	// to rv, the version of something just written, say.
	//
	// Errors: ctx's; [ErrNotFollowed].
	WaitForResourceVersion(ctx context.Context, namespace, rv string) error

	// HasSynced reports whether the cache has held a complete list.
	HasSynced() bool
	// Synced is closed when HasSynced becomes true; it is the same channel at every call.
	Synced() <-chan struct{}
	// WaitForSync waits for that.
	//
	// Errors: when ctx ends first, one that wraps its cause and the last [RequestError], and names the resource.
	WaitForSync(ctx context.Context) error
	// WaitForSyncOrRefusal is WaitForSync for callers that must not wait until somebody grants a permission, or runs
	// the informer: it returns as soon as the server refuses to list, at once while the last answer was a refusal, and
	// after a tenth of a second if neither the informer nor its factory was started. The informer goes on asking.
	//
	// Errors: those of WaitForSync; when the server refuses, it is an [ErrRefused]; [ErrNotStarted].
	WaitForSyncOrRefusal(ctx context.Context) error
	// Health says how it goes with the server.
	Health() Health
	// Stats counts what was done.
	Stats() Stats
}

var (
	// ErrAnotherHistory says that the server's history has ended, and that the cache is of the last one.
	ErrAnotherHistory = errors.New("the server's history went back, or another server has taken its place: " +
		"the cache is outdated, relisting")
	// ErrRefused says that the server refuses to list: a permission is missing, or the credentials are not accepted.
	ErrRefused = errors.New("the server refuses to list")
	// ErrNotStarted says that nobody runs the informer yet, so that its cache stays empty.
	ErrNotStarted = errors.New("the cache is read before it runs: start the manager first, or the informer's " +
		"factory; meanwhile read from the server (GetAPIReader of a manager, or client.Live)")
	// ErrNotFollowed says that a namespace is not one of those that the informer is restricted to.
	ErrNotFollowed = errors.New("namespace not followed")
)
