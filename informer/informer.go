package informer

import (
	"context"
	"errors"
	"iter"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Informer is a cache of one resource, and calls handlers when it changes. [SharedInformer] implements it; [For]
// returns typed views of the informers that a [Factory] shares.
//
// Concurrency: every method may be called at any time from any goroutine. Only index functions are restricted: they run
// while the cache is being written, and may only read.
//
// Objects are shared between the cache, its readers and all handlers, so they are read-only. Slices belong to the
// caller.
type Informer[T objects.Object] interface {
	// AddHandler registers h. h is called for every object in the cache, as an initial add, and then for every change.
	// AddHandler may be called at any time before or after the informer starts. It does not wait for h, and does not
	// delay other handlers.
	//
	// Errors: [ErrStopped].
	AddHandler(h handler.Handler[T], o handler.Options) (handler.Registration, error)
	// RemoveHandler keeps later changes from the handler, and waits until all earlier ones were delivered. If ctx or
	// the informer ends first the rest is dropped, and the error, an [UndeliveredError], counts it. A handler that
	// removes itself must not wait: it passes a ctx that is already done. Removing a handler twice is not an error.
	RemoveHandler(ctx context.Context, r handler.Registration) error
	// AddIndex adds an index to the cache, which may be empty or filled.
	//
	// Errors: [ErrIndexExists].
	AddIndex(name string, f indexer.IndexFunc[T]) error

	// Get returns an object. namespace is "" for cluster-scoped objects.
	Get(namespace, name string) (T, bool)
	// List returns the objects of a namespace ("" means all) that match sel (nil matches all), in no particular order.
	// It allocates a slice each time; a loop over all objects is faster with All.
	List(namespace string, sel labels.Selector) []T
	// ByIndex returns the objects for which the index function returned value, in no particular order. It allocates a
	// slice each time; a loop is faster with AllByIndex.
	//
	// Errors: [ErrNoIndex].
	ByIndex(name, value string) ([]T, error)
	// All iterates over one consistent state of the cache, without a copy. The loop may take any time.
	All() iter.Seq[T]
	// AllByIndex is All for the objects that ByIndex returns. Errors: [ErrNoIndex].
	AllByIndex(name, value string) (iter.Seq[T], error)
	// Snapshot returns the cache in its current state, for several reads that must fit together. Close it.
	Snapshot() indexer.Snapshot[T]
	// ResourceVersion returns the watermark: the cache has everything up to it. It is "" before the first list. For
	// several namespaces it is the lowest of theirs.
	ResourceVersion() string
	// NamespaceResourceVersion returns the watermark of one namespace. It is "" before the first list of that
	// namespace, and if the informer does not follow it. For namespace "" it is ResourceVersion.
	NamespaceResourceVersion(namespace string) string
	// History returns the number of the server's history that the cache of a namespace belongs to. For "" it is the
	// lowest of all followed namespaces. It rises when the cache is rebuilt because the server's history went back, or
	// another server took its place. Resource versions of different histories cannot be compared.
	History(namespace string) int64

	// WaitForResourceVersion waits until the cache of a namespace ("" means all that the informer follows) has
	// everything up to rv: the version of an object that was just written, for example.
	//
	// Errors: ctx's; [ErrNotFollowed].
	WaitForResourceVersion(ctx context.Context, namespace, rv string) error

	// HasSynced reports whether the cache has held a complete list.
	HasSynced() bool
	// Synced returns a channel that is closed when HasSynced becomes true. It is the same channel at every call.
	Synced() <-chan struct{}
	// WaitForSync waits until HasSynced is true.
	//
	// Errors: if ctx ends first, an error that names the resource and wraps ctx's cause and the last [RequestError].
	WaitForSync(ctx context.Context) error
	// WaitForSyncFailFast is WaitForSync for callers that must not wait until a permission is granted or the informer
	// is started. It returns an error as soon as the server forbids the list, which is at once if that was the server's
	// last answer. It also returns an error if neither the informer nor its factory is started within a tenth of a
	// second. The informer itself goes on trying.
	//
	// Errors: those of WaitForSync; [ErrForbidden]; [ErrNotStarted].
	WaitForSyncFailFast(ctx context.Context) error
	// Health returns the state of the connection to the server.
	Health() Health
	// Stats returns the informer's counters.
	Stats() Stats
}

var (
	// ErrHistoryReset reports that the server's history has ended, and that the cache still belongs to the last one.
	ErrHistoryReset = errors.New("the server's history went back, or another server has taken its place: " +
		"the cache is outdated, relisting")
	// ErrForbidden reports that the server forbids the list: a permission is missing, it rejects the credentials, or
	// the resource cannot be listed.
	ErrForbidden = errors.New("the server refuses to list")
	// ErrNotStarted reports that the informer does not run yet, so its cache stays empty.
	ErrNotStarted = errors.New("the cache is read before it runs: start the manager first, or the informer's " +
		"factory; meanwhile read from the server (GetAPIReader of a manager, or client.Live)")
	// ErrNotFollowed reports that the informer is restricted to other namespaces.
	ErrNotFollowed = errors.New("namespace not followed")
)
