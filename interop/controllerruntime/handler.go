package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/clientgo"
	"github.com/flyball-dev/flyball/internal/closed"
)

// watchErrorHandler is client-go's, which takes a reflector: nameless returns one that never runs. It is made on
// demand, because making it reads client-go's feature gates, which cannot change after that.
type watchErrorHandler = toolscache.WatchErrorHandlerWithContext

var nameless = sync.OnceValue(func() *toolscache.Reflector {
	return toolscache.NewReflectorWithOptions(&toolscache.ListWatch{}, nil, nil,
		toolscache.ReflectorOptions{Name: "flyball", TypeDescription: "objects"})
})

// GetInformer returns the informer of obj's kind and representation. If the cache is running, GetInformer waits until
// the informer has synced.
func (c *Cache) GetInformer(ctx context.Context, obj client.Object,
	opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	k, err := c.kindOf(obj)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, k, opts)
}

// GetInformerForKind is GetInformer for a Go type that the scheme knows.
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind,
	opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	if _, err := c.settings.o.Scheme.New(gvk); err != nil {
		return nil, err
	}
	return c.informer(ctx, kind{gvk: gvk}, opts)
}

func (c *Cache) informer(ctx context.Context, k kind, opts []cache.InformerGetOption) (cache.Informer, error) {
	var o cache.InformerGetOptions
	for _, opt := range opts {
		opt(&o)
	}
	e, err := c.of(k)
	if err != nil {
		return nil, err
	}
	if (o.BlockUntilSynced == nil || *o.BlockUntilSynced) && closed.Is(c.begun) {
		if err := e.waitForSync(ctx); err != nil {
			return nil, err
		}
	}
	return &handlers{cache: c, entry: e}, nil
}

// RemoveInformer stops the informer of obj's kind and representation, and frees its cache. The next read makes a new
// one.
func (c *Cache) RemoveInformer(_ context.Context, obj client.Object) error {
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	e := c.entries[k]
	delete(c.entries, k)
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	close(e.removed)
	e.release()
	example, err := e.example(c.settings.o.Scheme)
	if err != nil {
		return err
	}
	return c.cluster.Uncache(example)
}

// handlers implements controller-runtime's Informer.
type handlers struct {
	cache *Cache
	entry *entry
}

var _ cache.Informer = (*handlers)(nil)

func (h *handlers) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return h.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

func (h *handlers) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler,
	resync time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return h.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds the handler to every part.
func (h *handlers) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	o toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	if h.IsStopped() {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
	}
	r := &registration{
		of:     h.entry,
		synced: newAllDone("handler of "+h.entry.kind.gvk.Kind, h.cache.stopped, h.entry.removed),
	}
	one := &serialized{turn: make(chan struct{}, 1), handler: handler}
	for _, p := range h.entry.parts {
		resync := jitter(p.resync())
		if o.ResyncPeriod != nil {
			resync = *o.ResyncPeriod
		}
		to := handler
		if len(h.entry.parts) > 1 {
			to = one
		}
		added, err := p.addHandler(to, resync)
		if err != nil {
			return nil, errors.Join(err, h.RemoveEventHandler(r))
		}
		r.all = append(r.all, added)
		r.synced.add(added.Synced(), added.Done())
	}
	return r, nil
}

// jitter spreads the resyncs of informers.
//
// Source: controller-runtime v0.25.2 pkg/cache/internal/informers.go, calculateResyncPeriod.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + rand.Float64()/5))
}

// serialized makes several informers call one handler, one at a time.
type serialized struct {
	// turn has capacity 1 and holds an element while the handler is called.
	turn    chan struct{}
	handler toolscache.ResourceEventHandler
}

func (s *serialized) take() { s.turn <- struct{}{} }
func (s *serialized) give() { <-s.turn }

func (s *serialized) OnAdd(obj any, initial bool) {
	s.take()
	defer s.give()
	s.handler.OnAdd(obj, initial)
}

func (s *serialized) OnUpdate(old, obj any) {
	s.take()
	defer s.give()
	s.handler.OnUpdate(old, obj)
}

func (s *serialized) OnDelete(obj any) {
	s.take()
	defer s.give()
	s.handler.OnDelete(obj)
}

// RemoveEventHandler removes a handler at once: it drops pending events, and does not wait for a running call.
func (h *handlers) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	if r.of != h.entry {
		return nil
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for i, added := range r.all {
		err := h.entry.parts[i].RemoveHandler(now, added)
		if dropped := (*informer.UndeliveredError)(nil); err != nil && !errors.As(err, &dropped) {
			return err
		}
	}
	return nil
}

// AddIndexers adds indexes to those that lists select by; see [Cache.IndexField]. An index may have the name of a
// field.
func (h *handlers) AddIndexers(indexers toolscache.Indexers) error {
	if h.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	for name, f := range indexers {
		for _, p := range h.entry.parts {
			if err := p.AddIndex("indexer:"+name,
				func(obj informer.Object) ([]string, error) { return f(obj) }); err != nil {
				return fmt.Errorf("indexer conflict: %w", err)
			}
		}
	}
	return nil
}

func (h *handlers) HasSynced() bool { return h.entry.synced.isDone() }

// IsStopped reports whether the cache has stopped or the informer was removed.
func (h *handlers) IsStopped() bool { return closed.Is(h.entry.removed) || closed.Is(h.cache.stopped) }

// HasSyncedChecker returns a checker that is done when all parts have synced.
func (h *handlers) HasSyncedChecker() toolscache.DoneChecker { return h.entry.synced }

// registration is a handler in all parts of an entry.
type registration struct {
	of     *entry
	all    []informer.Registration
	synced *allDone
}

func (r *registration) HasSynced() bool { return r.synced.isDone() }

// HasSyncedChecker returns a checker that is done when the handler has received all existing objects.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker { return r.synced }

// addHandler adds one of client-go's handlers. The handler gets every state: controller-runtime's predicates see the
// old and new object of each change, and must not miss a change that a later one reverts.
func (p *part) addHandler(h toolscache.ResourceEventHandler, resync time.Duration) (informer.Registration, error) {
	return p.AddHandler(informer.Handler[informer.Object]{
		OnAdd: func(obj informer.Object, initial bool) {
			defer utilruntime.HandleCrash()
			h.OnAdd(obj, initial)
		},
		OnUpdate: func(old, obj informer.Object) {
			defer utilruntime.HandleCrash()
			h.OnUpdate(old, obj)
		},
		OnDelete: func(d informer.Deleted[informer.Object]) {
			defer utilruntime.HandleCrash()
			if d.Stale {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: d.Key, Obj: d.Object})
				return
			}
			h.OnDelete(d.Object)
		},
	}, informer.HandlerOptions{MaxLag: -1, Resync: resync})
}

// NewInformer is for [sigs.k8s.io/controller-runtime/pkg/cache.Options].NewInformer. It puts Flyball's informers into
// controller-runtime's own cache. controller-runtime still decides what they list and how objects are decoded;
// [NewCache] replaces that, too.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return clientgo.NewSharedIndexInformer(lw, example, resync, indexers)
}
