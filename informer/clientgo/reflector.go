package clientgo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// StoreReflector keeps a store in line with the server while it runs. It replaces client-go's Reflector, a struct type
// that cannot be implemented outside client-go:
//
//	reflector.Reflector ──▶ deltafifo.DeltaFIFO ──▶ Replace, Add, Update, Delete, Resync of the store
//
// It has no ListAndWatch, which in client-go returns at the first failure. Run goes on until it is stopped.
//
// Concurrency: only the goroutine that called Run calls the store. LastSyncResourceVersion, Name and TypeDescription
// may be called at any time.
type StoreReflector struct {
	// WatchListPageSize is the number of objects in a page of a list; 0 means 500. Set it before Run.
	WatchListPageSize int64
	// ShouldResync is called at every resync period, and reports whether to resync; nil means always. Set it before
	// Run.
	ShouldResync func() bool

	lw    listerWatcher
	store peer.ReflectorStore
	o     ReflectorOptions
	// stream is true if lists should be streamed.
	stream bool

	mu sync.Mutex
	// version is the resource version of the store.
	version string
}

// NewReflector is NewReflectorWithOptions with a resync period.
func NewReflector(lw ListerWatcher, example any, store peer.ReflectorStore, resync time.Duration) *StoreReflector {
	return NewReflectorWithOptions(lw, example, store, ReflectorOptions{ResyncPeriod: resync})
}

// NewNamedReflector is NewReflector with a name for logs.
func NewNamedReflector(name string, lw ListerWatcher, example any, store peer.ReflectorStore,
	resync time.Duration,
) *StoreReflector {
	return NewReflectorWithOptions(lw, example, store, ReflectorOptions{Name: name, ResyncPeriod: resync})
}

// NewNamespaceKeyedIndexerAndReflector returns a store with an index by namespace, and the reflector that fills it.
func NewNamespaceKeyedIndexerAndReflector(lw ListerWatcher, example any,
	resync time.Duration,
) (Indexer, *StoreReflector) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, example, indexer, resync)
}

// NewReflectorWithOptions returns a reflector that fills store with what lw lists. example has the type of the objects;
// nil means any. It uses Logger, Name, TypeDescription, ResyncPeriod and MinWatchTimeout; pauses after failures are
// those of package informer. It panics if o has a Backoff, or a Clock other than the real one. If it ignored them, a
// test could wait for ever.
func NewReflectorWithOptions(lw ListerWatcher, example any, store peer.ReflectorStore,
	o ReflectorOptions,
) *StoreReflector {
	switch o.Clock.(type) {
	case nil, clock.RealClock, *clock.RealClock:
	default:
		panic("informer/clientgo: Clock is not supported; virtualise time with testing/synctest")
	}
	if o.Backoff != nil {
		panic("informer/clientgo: Backoff is not supported; reflector.New has one")
	}
	if o.TypeDescription == "" {
		o.TypeDescription = "<unspecified>"
		if example != nil {
			o.TypeDescription = fmt.Sprintf("%T", example)
		}
	}
	object, _ := example.(runtime.Object)
	return &StoreReflector{
		lw: listerWatcher{peer.ToListerWatcherWithContext(lw), object}, store: store, o: o, stream: streamsLists(lw),
	}
}

// Name returns the name for logs.
func (r *StoreReflector) Name() string { return r.o.Name }

// TypeDescription returns the type of the objects, for display.
func (r *StoreReflector) TypeDescription() string { return r.o.TypeDescription }

// LastSyncResourceVersion returns the resource version of the store; "" before the first list.
func (r *StoreReflector) LastSyncResourceVersion() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version
}

// Run is RunWithContext with a channel instead of a context.
func (r *StoreReflector) Run(stop <-chan struct{}) { runUntil(stop, r.RunWithContext) }

// RunWithContext runs until ctx is done, and returns when everything has ended. It may be called again after that, and
// then lists anew.
func (r *StoreReflector) RunWithContext(ctx context.Context) {
	if r.o.Logger != nil {
		ctx = klog.NewContext(ctx, *r.o.Logger)
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("reflector", r.o.Name, "type", r.o.TypeDescription))
	fifo := deltafifo.New[held]()
	reflector := reflector.New(r.lw, fifo, reflector.Options[held]{
		Resource: r.o.TypeDescription, PageSize: r.WatchListPageSize, StreamLists: r.stream,
		WatchTimeout: max(r.o.MinWatchTimeout, 5*time.Minute),
	})
	var following sync.WaitGroup
	following.Go(func() { _ = reflector.Run(ctx) }) // It ends with ctx and returns nil.
	r.fill(ctx, fifo)
	following.Wait()
}

// fill writes the reflector's deltas into the store until ctx is done.
func (r *StoreReflector) fill(ctx context.Context, fifo *deltafifo.DeltaFIFO[held]) {
	var resync <-chan time.Time // Blocks for ever if there is no period.
	if r.o.ResyncPeriod > 0 {
		ticker := time.NewTicker(r.o.ResyncPeriod)
		defer ticker.Stop()
		resync = ticker.C
	}
	var batch []deltafifo.Delta[held]
	for {
		select {
		case <-ctx.Done():
			return
		case <-resync:
			if r.LastSyncResourceVersion() != "" && (r.ShouldResync == nil || r.ShouldResync()) {
				r.report(ctx, "resync", r.store.Resync())
			}
		case <-fifo.Ready():
			batch = fifo.Take(batch)
			for i := range batch {
				r.apply(ctx, &batch[i])
			}
		}
	}
}

// apply writes one delta. Errors of the store are reported, and the rest goes on, as in client-go.
func (r *StoreReflector) apply(ctx context.Context, d *deltafifo.Delta[held]) {
	obj := any(d.Object.Object)
	switch {
	case d.Type == deltafifo.Replace:
		objs := make([]any, len(d.Objects))
		for i, o := range d.Objects {
			objs[i] = o.Object
		}
		r.report(ctx, "replace", r.store.Replace(objs, d.ResourceVersion))
	case len(d.Unreadable) > 0: // The reflector has logged it.
	case d.Type == deltafifo.Upsert && d.Object.from == fromAdded:
		r.report(ctx, "add", r.store.Add(obj))
	case d.Type == deltafifo.Upsert:
		r.report(ctx, "update", r.store.Update(obj))
	case d.Type == deltafifo.Delete:
		r.report(ctx, "delete", r.store.Delete(obj))
	case d.Type == deltafifo.Bookmark:
		if s, ok := r.store.(peer.ReflectorBookmarkStore); ok {
			r.report(ctx, "bookmark", s.Bookmark(d.ResourceVersion))
		}
	}
	if d.ResourceVersion != "" {
		r.mu.Lock()
		r.version = d.ResourceVersion
		r.mu.Unlock()
	}
	if s, ok := r.store.(peer.ResourceVersionUpdater); ok && d.ResourceVersion != "" && d.Type != deltafifo.Replace {
		s.UpdateResourceVersion(d.ResourceVersion) // Replace has already received the version.
	}
}

func (r *StoreReflector) report(ctx context.Context, operation string, err error) {
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "The store refused a write", "operation", operation)
	}
}
