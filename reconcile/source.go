package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
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
	// backlog holds the keys back while nobody works; nil when somebody does.
	backlog atomic.Pointer[backlog[K]]
}

// For is an [Enqueuer] whose keys carry cause.
func (s *Sink[K]) For(cause workqueue.Cause) Enqueuer[K] { return s.of(cause, true) }

// of is For of something that changed, or else, without news, is there.
func (s *Sink[K]) of(cause workqueue.Cause, news bool) Enqueuer[K] {
	s.stats.events.Add(1)
	return &enqueuer[K]{sink: s, cause: cause, news: news}
}

type enqueuer[K comparable] struct {
	sink  *Sink[K]
	cause workqueue.Cause
	news  bool
}

func (e *enqueuer[K]) Add(key K) {
	if e.held(key, debt{now: true}) {
		return
	}
	e.sink.pace.heard(key)
	e.sink.queue.AddWithCause(key, e.cause)
}

func (e *enqueuer[K]) AddAfter(key K, d time.Duration) {
	later := debt{now: d <= 0}
	if d > 0 {
		later.due = time.Now().Add(d)
	}
	if !e.held(key, later) {
		e.sink.queue.AddWith(key, workqueue.AddOptions{After: d, Cause: e.cause})
	}
}

func (e *enqueuer[K]) AddRateLimited(key K) {
	if !e.held(key, debt{limited: true}) {
		e.sink.queue.AddWith(key, workqueue.AddOptions{RateLimited: true, Cause: e.cause})
	}
}

// held counts the key, and says whether it is held back.
func (e *enqueuer[K]) held(key K, d debt) bool {
	e.sink.stats.adds.Add(1)
	b := e.sink.backlog.Load()
	if b == nil {
		return false
	}
	if b.add(key, d, e.cause, e.news) {
		return true
	}
	e.sink.backlog.Store(nil) // Somebody works now.
	return false
}

// Kind is the [Source] of the changes that inf sees, turned into keys by h. The informer is run by whoever
// owns it, for example its factory.
func Kind[T informer.Object, K comparable](inf informer.Informer[T], h EventHandler[T, K]) Source[K] {
	k := &kind[T, K]{informer: inf, handler: h}
	switch {
	case misuse.IsNil(inf):
		k.name = reflect.TypeFor[T]().String()
		k.wrong = errors.New("the informer is nil: informer.For makes one")
	case h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil:
		k.name = inf.Health().Resource
		k.wrong = errors.New("the handler has no function: EnqueueObject, EnqueueOwner and EnqueueMapped make handlers")
	default:
		k.name = inf.Health().Resource
	}
	return k
}

type kind[T informer.Object, K comparable] struct {
	informer informer.Informer[T]
	handler  EventHandler[T, K]
	name     string
	wrong    error // what was wrong with the arguments of Kind, for Run to return
}

func (k *kind[T, K]) String() string { return k.name }

// Repeats implements [Repeater]: what is in the cache is told anew.
func (k *kind[T, K]) Repeats() bool { return true }

func (k *kind[T, K]) Health() error {
	if k.wrong != nil {
		return fmt.Errorf("watch %s: %w", k.name, k.wrong)
	}
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
	if k.wrong != nil {
		return fmt.Errorf("watch %s: %w", k.name, k.wrong)
	}
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
	cause := func(event string, obj T, news bool) Enqueuer[K] {
		return out.of(workqueue.Cause{
			Source: k.name, Event: event, Object: objectName(obj), ResourceVersion: obj.GetResourceVersion(), Time: time.Now(),
		}, news)
	}
	var h informer.Handler[T]
	if k.handler.OnAdd != nil {
		h.OnAdd = func(obj T, initial bool) { k.handler.OnAdd(ctx, obj, initial, cause("Add", obj, !initial)) }
	}
	if k.handler.OnUpdate != nil {
		h.OnUpdate = func(old, obj T) {
			changed := old.GetResourceVersion() != obj.GetResourceVersion() // else it is a resync
			k.handler.OnUpdate(ctx, old, obj, cause("Update", obj, changed))
		}
	}
	if k.handler.OnDelete != nil {
		h.OnDelete = func(gone informer.Deleted[T]) { k.handler.OnDelete(ctx, gone, cause("Delete", gone.Object, true)) }
	}
	return h
}

func objectName(obj metav1.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}
