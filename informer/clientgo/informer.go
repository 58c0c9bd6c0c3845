package clientgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/features"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/internal/closed"
)

// sharedInformer implements client-go's SharedIndexInformer with an informer of this module.
type sharedInformer struct {
	inf     *informer.SharedInformer[held]
	store   *store[held]
	o       SharedIndexInformerOptions
	example runtime.Object
	// mutations is client-go's detector. It does nothing unless KUBE_CACHE_MUTATION_DETECTOR is set.
	mutations peer.MutationDetector
	// reflector never runs: watch error handlers only ask it for its name.
	reflector *peer.Reflector
	// stopped is closed by the run when it ends.
	stopped chan struct{}

	mu sync.Mutex
	// handlers counts all handlers that were ever added, for their names.
	handlers int
	// started means that transform and onError do not change any more. The run reads them without the lock.
	started   bool
	transform TransformFunc
	onError   peer.WatchErrorHandlerWithContext
}

// NewSharedInformer returns an informer without indexes; see [NewSharedIndexInformerWithOptions].
func NewSharedInformer(lw ListerWatcher, example runtime.Object, resync time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, example, resync, Indexers{})
}

// NewSharedIndexInformer is the function that generated factories pass to InformerFor; see
// [NewSharedIndexInformerWithOptions].
func NewSharedIndexInformer(lw ListerWatcher, example runtime.Object, resync time.Duration,
	indexers Indexers,
) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, example,
		SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions returns an informer of the objects that lw lists. example has their type; nil means
// any type. Identifier and InformerMetricsProvider are not used. Instead, the informer has a method Stats, for package
// informer/metrics, and a method Health.
//
// Like client-go's informer it asks for streamed lists, unless lw cannot stream them (IsWatchListSemanticsUnSupported)
// or client-go's feature gate WatchListClient is off.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, example runtime.Object,
	o SharedIndexInformerOptions,
) SharedIndexInformer {
	return newInformer(lw, example, o, 0)
}

// newInformer is NewSharedIndexInformerWithOptions with minWatch, the shortest timeout of a watch. Anything below 5 min
// means 5 min.
func newInformer(lw ListerWatcher, example runtime.Object, o SharedIndexInformerOptions,
	minWatch time.Duration,
) *sharedInformer {
	if o.ObjectDescription == "" {
		o.ObjectDescription = fmt.Sprintf("%T", example)
	}
	s := &sharedInformer{
		o: o, example: example, stopped: make(chan struct{}),
		mutations: peer.NewCacheMutationDetector(o.ObjectDescription),
	}
	s.inf = informer.NewSharedInformer[held](listerWatcher{peer.ToListerWatcherWithContext(lw), example},
		informer.Options[held]{
			Resource: o.ObjectDescription, Transform: s.transformed, OnError: s.failed, StreamLists: streamsLists(lw),
			WatchTimeout: max(minWatch, 5*time.Minute), Panics: handler.CrashOnPanic,
		})
	s.store = newFollowedStore(s.inf.Indexer(), o.Indexers)
	s.reflector = peer.NewReflectorWithOptions(lw, example, s.store, peer.ReflectorOptions{
		Name: o.ObjectDescription, TypeDescription: o.ObjectDescription,
	})
	return s
}

func (s *sharedInformer) GetStore() Store           { return s.store }
func (s *sharedInformer) GetIndexer() Indexer       { return s.store }
func (s *sharedInformer) GetController() Controller { return dummyController{s} }

// AddIndexers adds indexes at any time before the informer has stopped.
func (s *sharedInformer) AddIndexers(indexers Indexers) error {
	if s.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.store.AddIndexers(indexers)
}

// Run is RunWithContext with a channel instead of a context.
func (s *sharedInformer) Run(stop <-chan struct{}) { runUntil(stop, s.RunWithContext) }

// runUntil calls run with a context that ends when stop is closed, and returns when run does.
func runUntil(stop <-chan struct{}, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var waiter sync.WaitGroup
	waiter.Go(func() {
		select {
		case <-stop:
		case <-ended:
		}
		cancel()
	})
	run(ctx)
	close(ended)
	waiter.Wait()
}

// streamsLists reports whether to ask lw for streamed lists, by client-go's rule.
func streamsLists(lw any) bool {
	return features.FeatureGates().Enabled(features.WatchListClient) &&
		!watchlist.DoesClientNotSupportWatchListSemantics(lw)
}

// RunWithContext runs until ctx is done, and returns when everything has ended. A second call logs a warning and
// returns at once.
func (s *sharedInformer) RunWithContext(ctx context.Context) {
	if s.set(func() { s.started = true }) != nil {
		klog.FromContext(ctx).Info("Warning: the sharedIndexInformer has started, run more than once is not allowed")
		return
	}
	defer close(s.stopped)
	var detector sync.WaitGroup
	detector.Go(func() { s.mutations.Run(ctx.Done()) })
	_ = s.inf.Run(ctx) // It fails only if it ran before.
	detector.Wait()
}

func (s *sharedInformer) IsStopped() bool { return closed.Is(s.stopped) }

func (s *sharedInformer) HasSynced() bool { return s.inf.HasSynced() }

func (s *sharedInformer) HasSyncedChecker() DoneChecker { return checker{s.String(), s.inf.Synced()} }

// String returns the informer's name.
func (s *sharedInformer) String() string { return fmt.Sprintf("SharedIndexInformer %T", s.example) }

// LastSyncResourceVersion returns the resource version of the store. The watch may already have read later versions.
func (s *sharedInformer) LastSyncResourceVersion() string { return s.inf.ResourceVersion() }

// Stats returns the statistics for package informer/metrics.
func (s *sharedInformer) Stats() informer.Stats { return s.inf.Stats() }

// Health returns why the informer has not synced.
func (s *sharedInformer) Health() informer.Health { return s.inf.Health() }

// set calls f unless the informer has started.
func (s *sharedInformer) set(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errors.New("informer has already started")
	}
	f()
	return nil
}

func (s *sharedInformer) SetTransform(f TransformFunc) error {
	return s.set(func() { s.transform = f })
}

func (s *sharedInformer) SetWatchErrorHandler(f peer.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *peer.Reflector, err error) { f(r, err) })
}

func (s *sharedInformer) SetWatchErrorHandlerWithContext(f peer.WatchErrorHandlerWithContext) error {
	return s.set(func() { s.onError = f })
}

// transformed calls the function given to SetTransform.
func (s *sharedInformer) transformed(h held) (held, error) {
	if s.transform != nil {
		kept, err := s.transform(h.Object)
		if err != nil {
			return h, err
		}
		obj, ok := kept.(informer.Object)
		if !ok {
			return h, fmt.Errorf("the transform made a %T, which has no metadata", kept)
		}
		h.Object = obj
	}
	s.mutations.AddObject(h.Object)
	return h, nil
}

// failed calls the function given to SetWatchErrorHandler, with the error that client-go would pass.
func (s *sharedInformer) failed(ctx context.Context, err error) {
	if s.onError == nil {
		return // The core reports the failure in Health and the log.
	}
	var request *informer.RequestError
	if errors.As(err, &request) {
		err = request.Err
	}
	s.onError(ctx, s.reflector, err)
}

// checker implements client-go's DoneChecker.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

var _ peer.SharedIndexInformer = (*sharedInformer)(nil)

// dummyController is what GetController returns. It reports the informer's state; its Run does nothing.
type dummyController struct{ inf *sharedInformer }

func (dummyController) RunWithContext(context.Context)    {}
func (dummyController) Run(<-chan struct{})               {}
func (c dummyController) HasSynced() bool                 { return c.inf.HasSynced() }
func (c dummyController) HasSyncedChecker() DoneChecker   { return c.inf.HasSyncedChecker() }
func (c dummyController) LastSyncResourceVersion() string { return c.inf.LastSyncResourceVersion() }

// controller is the controller of an informer with one handler.
type controller struct {
	*sharedInformer
	// handler is nil if none was given.
	handler ResourceEventHandlerRegistration
}

// HasSynced reports whether the store is filled and the handler was called for everything in it.
func (c controller) HasSynced() bool { return IsDone(c.HasSyncedChecker()) }

func (c controller) HasSyncedChecker() DoneChecker {
	if c.handler != nil {
		return c.handler.HasSyncedChecker()
	}
	return c.sharedInformer.HasSyncedChecker()
}

// NewInformerWithOptions returns a store that is kept up to date while the controller runs, and that has one handler.
// The store is an Indexer. Unlike in client-go, the goroutine that writes the store does not call the handler, so a
// slow handler does not delay the store.
func NewInformerWithOptions(o InformerOptions) (Store, Controller) {
	inf := newInformer(o.ListerWatcher, o.ObjectType, SharedIndexInformerOptions{
		ResyncPeriod: o.ResyncPeriod, Indexers: o.Indexers,
	}, o.MinWatchTimeout)
	inf.transform = o.Transform
	c := controller{sharedInformer: inf}
	if o.Handler != nil {
		var err error
		if c.handler, err = inf.AddEventHandlerWithOptions(o.Handler, HandlerOptions{Logger: o.Logger}); err != nil {
			panic(err) // The informer cannot have stopped.
		}
	}
	return inf.store, c
}

// NewInformer is NewInformerWithOptions without indexes.
func NewInformer(lw ListerWatcher, example runtime.Object, resync time.Duration,
	h ResourceEventHandler,
) (Store, Controller) {
	return NewInformerWithOptions(
		InformerOptions{ListerWatcher: lw, ObjectType: example, ResyncPeriod: resync, Handler: h},
	)
}

// NewIndexerInformer is NewInformerWithOptions with indexes.
func NewIndexerInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler,
	indexers Indexers,
) (Indexer, Controller) {
	s, c := NewInformerWithOptions(
		InformerOptions{ListerWatcher: lw, ObjectType: example, ResyncPeriod: resync, Handler: h, Indexers: indexers},
	)
	return s.(Indexer), c
}

var (
	_ peer.Controller = dummyController{}
	_ peer.Controller = controller{}
)
