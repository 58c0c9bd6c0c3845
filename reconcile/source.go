package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/workqueue"
)

// Source feeds keys into a controller. Sources are compared by ==, so implement it on a pointer.
type Source[K comparable] interface {
	// Run feeds out until ctx is done. It calls synced once, when everything that was there at the start
	// has been fed, and before it returns it removes whatever it has registered elsewhere. Returning
	// early with nil is fine for a source that has no more to say; an error stops the controller.
	Run(ctx context.Context, out *Sink[K], synced func()) error
	// Health is nil, or says why the source has nothing to feed yet, in words for people.
	Health() error
	// String names the source in logs and causes, for example "pods".
	String() string
}

// Sink is a controller's queue as a [Source] sees it.
type Sink[K comparable] struct {
	queue *workqueue.Queue[K]
	stats *counters
	pace  *pacer[K]
}

// For is an [Enqueuer] whose keys carry cause.
func (s *Sink[K]) For(cause workqueue.Cause) Enqueuer[K] {
	s.stats.events.Add(1)
	return &enqueuer[K]{queue: s.queue, adds: &s.stats.adds, pace: s.pace, cause: cause}
}

type enqueuer[K comparable] struct {
	queue *workqueue.Queue[K]
	adds  *atomic.Uint64
	pace  *pacer[K]
	cause workqueue.Cause
}

func (e *enqueuer[K]) Add(key K) {
	e.adds.Add(1)
	e.pace.heard(key)
	e.queue.AddWithCause(key, e.cause)
}

func (e *enqueuer[K]) AddAfter(key K, d time.Duration) {
	e.adds.Add(1)
	e.queue.AddWith(key, workqueue.AddOptions{After: d, Cause: e.cause})
}

func (e *enqueuer[K]) AddRateLimited(key K) {
	e.adds.Add(1)
	e.queue.AddWith(key, workqueue.AddOptions{RateLimited: true, Cause: e.cause})
}

// Kind is the [Source] of the changes that inf sees, turned into keys by h. The informer is run by whoever
// owns it, for example its factory.
func Kind[T informer.Object, K comparable](inf informer.Informer[T], h EventHandler[T, K]) Source[K] {
	return &kind[T, K]{informer: inf, handler: h, name: inf.Health().Resource}
}

type kind[T informer.Object, K comparable] struct {
	informer informer.Informer[T]
	handler  EventHandler[T, K]
	name     string
}

func (k *kind[T, K]) String() string { return k.name }

func (k *kind[T, K]) Health() error {
	if h := k.informer.Health(); !h.Synced && h.Err != nil {
		return h.Err
	}
	if !k.informer.HasSynced() {
		return fmt.Errorf("%s: the first list has not been read yet", k.name)
	}
	return nil
}

// Run registers the handler for as long as ctx lives.
func (k *kind[T, K]) Run(ctx context.Context, out *Sink[K], synced func()) error {
	reg, err := k.informer.AddHandler(k.events(ctx, out), informer.HandlerOptions{})
	if err != nil {
		return fmt.Errorf("watch %s: %w", k.name, err)
	}
	select {
	case <-reg.Synced():
		synced()
		<-ctx.Done()
	case <-ctx.Done():
	}
	// What is still buffered need not arrive: a stopped controller starts no key, and a source taken from a
	// running one is no longer asked about. But no call may be running when this returns.
	removal, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	if err := k.informer.RemoveHandler(removal, reg); err != nil {
		klog.FromContext(ctx).Error(err, "Handler was not done when its source stopped", "resource", k.name)
	}
	return nil
}

// removalTimeout bounds the wait for a handler call in progress.
const removalTimeout = 10 * time.Second

func (k *kind[T, K]) events(ctx context.Context, out *Sink[K]) informer.Handler[T] {
	cause := func(event string, obj T) Enqueuer[K] {
		return out.For(workqueue.Cause{
			Source: k.name, Event: event, Object: objectName(obj), ResourceVersion: obj.GetResourceVersion(), Time: time.Now(),
		})
	}
	var h informer.Handler[T]
	if k.handler.OnAdd != nil {
		h.OnAdd = func(obj T, initial bool) { k.handler.OnAdd(ctx, obj, initial, cause("Add", obj)) }
	}
	if k.handler.OnUpdate != nil {
		h.OnUpdate = func(old, obj T) { k.handler.OnUpdate(ctx, old, obj, cause("Update", obj)) }
	}
	if k.handler.OnDelete != nil {
		h.OnDelete = func(gone informer.Deleted[T]) { k.handler.OnDelete(ctx, gone, cause("Delete", gone.Object)) }
	}
	return h
}

func objectName(obj metav1.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}
