package clientgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
)

// sharedInformer is client-go's SharedIndexInformer over one of ours.
type sharedInformer struct {
	inf    *informer.SharedInformer[informer.Object]
	store  *store[informer.Object]
	lw     peer.ListerWatcher
	o      SharedIndexInformerOptions
	object runtime.Object
	// stopped is closed when the run has ended; by the run, which is one.
	stopped chan struct{}

	mu sync.Mutex
	// started says that the functions below cannot be set any more.
	started   bool
	transform TransformFunc
	onError   WatchErrorHandlerWithContext
}

// NewSharedInformer returns an informer without indexes; see [NewSharedIndexInformerWithOptions].
func NewSharedInformer(lw ListerWatcher, example runtime.Object, resync time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, example, resync, Indexers{})
}

// NewSharedIndexInformer is what generated factories pass to InformerFor; see [NewSharedIndexInformerWithOptions].
func NewSharedIndexInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, indexers Indexers) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, example, SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions returns an informer of what lw lists. example has the type of the objects; nil does not
// say. Identifier and InformerMetricsProvider are not used: package informer/metrics reads the statistics instead, which
// the returned informer has as Stats().
func NewSharedIndexInformerWithOptions(lw ListerWatcher, example runtime.Object, o SharedIndexInformerOptions) SharedIndexInformer {
	s := &sharedInformer{lw: lw, o: o, object: example, stopped: make(chan struct{})}
	if s.o.ObjectDescription == "" {
		s.o.ObjectDescription = fmt.Sprintf("%T", example)
	}
	s.inf = informer.NewSharedInformer[informer.Object](listerWatcher{peer.ToListerWatcherWithContext(lw), example}, informer.Options[informer.Object]{
		Resource: s.o.ObjectDescription, Transform: s.transformed, OnError: s.failed,
	})
	s.store = newStore(s.inf.Indexer(), DeletionHandlingMetaNamespaceKeyFunc)
	if err := s.store.AddIndexers(o.Indexers); err != nil {
		panic(err) // The indexer is empty and names in a map are distinct.
	}
	return s
}

func (s *sharedInformer) AddEventHandler(h ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, HandlerOptions{})
}

func (s *sharedInformer) AddEventHandlerWithResyncPeriod(h ResourceEventHandler, resync time.Duration) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler that is given every update. The Logger of the options is not used.
func (s *sharedInformer) AddEventHandlerWithOptions(h ResourceEventHandler, o HandlerOptions) (ResourceEventHandlerRegistration, error) {
	resync := s.o.ResyncPeriod
	if o.ResyncPeriod != nil {
		resync = *o.ResyncPeriod
	}
	r, err := s.inf.AddHandler(handlerOf(h), informer.HandlerOptions{Resync: resync, MaxLag: -1})
	if err != nil {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already: %w", h, err)
	}
	return registration{r}, nil
}

// handlerOf makes a handler of ours of one of client-go's.
func handlerOf(h ResourceEventHandler) informer.Handler[informer.Object] {
	return informer.Handler[informer.Object]{
		OnAdd:    func(obj informer.Object, initial bool) { h.OnAdd(obj, initial) },
		OnUpdate: func(old, obj informer.Object) { h.OnUpdate(old, obj) },
		OnDelete: func(d informer.Deleted[informer.Object]) {
			if d.Stale {
				h.OnDelete(DeletedFinalStateUnknown{Key: d.Key, Obj: d.Object})
				return
			}
			h.OnDelete(d.Object)
		},
	}
}

// RemoveEventHandler removes at once, as client-go does: what is pending is dropped, the call that runs is not waited for.
// See [ShutDownEventHandler].
func (s *sharedInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	r, ok := handle.(registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.inf.RemoveHandler(now, r.Registration)
	if dropped := (*informer.UndeliveredError)(nil); errors.As(err, &dropped) {
		return nil
	}
	return err
}

func (s *sharedInformer) GetStore() Store           { return s.store }
func (s *sharedInformer) GetIndexer() Indexer       { return s.store }
func (s *sharedInformer) GetController() Controller { return controller{run: s.RunWithContext, inf: s} }

// AddIndexers adds indexes at any time before the informer has stopped.
func (s *sharedInformer) AddIndexers(indexers Indexers) error {
	if s.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.store.AddIndexers(indexers)
}

// Run is RunWithContext with a channel instead of a context.
func (s *sharedInformer) Run(stop <-chan struct{}) {
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
	s.RunWithContext(ctx)
	close(ended)
	waiter.Wait()
}

// RunWithContext runs until ctx is done, and returns when all has ended. A second call returns at once.
func (s *sharedInformer) RunWithContext(ctx context.Context) {
	s.mu.Lock()
	again := s.started
	s.started = true
	s.mu.Unlock()
	if again {
		klog.FromContext(ctx).Info("Warning: the informer has started, run more than once is not allowed")
		return
	}
	defer close(s.stopped)
	_ = s.inf.Run(ctx) // It fails only when it was run before.
}

func (s *sharedInformer) IsStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

func (s *sharedInformer) HasSynced() bool { return s.inf.HasSynced() }

func (s *sharedInformer) HasSyncedChecker() DoneChecker {
	return checker{"SharedIndexInformer " + s.o.ObjectDescription, s.inf.Synced()}
}

// LastSyncResourceVersion is that of the store: what has been applied, not what has been read.
func (s *sharedInformer) LastSyncResourceVersion() string { return s.inf.ResourceVersion() }

// Stats is what package informer/metrics reads.
func (s *sharedInformer) Stats() informer.Stats { return s.inf.Stats() }

// Health says why the informer has not synced, when it has not.
func (s *sharedInformer) Health() informer.Health { return s.inf.Health() }

var errStarted = errors.New("informer has already started")

// set calls f unless the informer has started.
func (s *sharedInformer) set(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	f()
	return nil
}

func (s *sharedInformer) SetTransform(f TransformFunc) error {
	return s.set(func() { s.transform = f })
}

func (s *sharedInformer) SetWatchErrorHandler(f WatchErrorHandler) error {
	return s.set(func() { s.onError = func(_ context.Context, r *peer.Reflector, err error) { f(r, err) } })
}

func (s *sharedInformer) SetWatchErrorHandlerWithContext(f WatchErrorHandlerWithContext) error {
	return s.set(func() { s.onError = f })
}

// transformed applies what SetTransform set.
func (s *sharedInformer) transformed(obj informer.Object) (informer.Object, error) {
	s.mu.Lock()
	f := s.transform
	s.mu.Unlock()
	if f == nil {
		return obj, nil
	}
	kept, err := f(obj)
	if err != nil {
		return nil, err
	}
	o, ok := kept.(informer.Object)
	if !ok {
		return nil, fmt.Errorf("the transform made a %T, which has no metadata", kept)
	}
	return o, nil
}

// failed calls what SetWatchErrorHandler set. Handlers may ask the reflector for its name: it is one that never runs.
func (s *sharedInformer) failed(ctx context.Context, err error) {
	s.mu.Lock()
	f := s.onError
	s.mu.Unlock()
	if f == nil {
		return
	}
	r := peer.NewReflectorWithOptions(s.lw, s.object, s.store, peer.ReflectorOptions{Name: s.o.ObjectDescription})
	var request *informer.RequestError
	if errors.As(err, &request) {
		err = request.Err // What client-go would have passed.
	}
	f(ctx, r, err)
}

// registration is client-go's handle of a handler.
type registration struct{ *informer.Registration }

func (r registration) HasSyncedChecker() DoneChecker { return checker{r.Name(), r.Synced()} }

// ShutdownChan is what ShutDownEventHandler waits for.
func (r registration) ShutdownChan() <-chan struct{} { return r.Done() }

// checker is client-go's DoneChecker.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }
