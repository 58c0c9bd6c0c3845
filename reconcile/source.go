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
	"github.com/flyball-dev/flyball/internal/loop/backlog"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/workqueue"
)

// Source feeds keys into a controller. It may also have a method Repeats() bool: true means that it tells everything
// anew when it is run again, as a source of a cache does. Such a source is run before the controller works
// ([Controller.Warmup]), and what it fed then may be forgotten. A source without that method runs when the controller
// does.
type Source[K comparable] interface {
	// Run feeds out until ctx is done. It calls synced once, when everything that was there at the start
	// has been fed, and before it returns it removes whatever it has registered elsewhere. Returning
	// early with nil is fine for a source that has no more to say; an error stops the controller.
	Run(ctx context.Context, out *Sink[K], synced func()) error
	// Health is nil, or the reason why the source has nothing to feed yet, in words for people.
	Health() error
	// String names the source in logs and causes, for example "pods".
	String() string
}

// Sink is a controller's queue as a [Source] sees it.
type Sink[K comparable] struct {
	controller *Controller[K]
	// backlog holds the keys back while nobody works; nil when somebody does.
	backlog atomic.Pointer[backlog.Backlog[K]]
}

// For returns an [Enqueuer] whose keys carry cause.
func (s *Sink[K]) For(cause workqueue.Cause) Enqueuer[K] { return s.enqueuer(cause, true) }

// enqueuer is For, where news tells a change from what was there all the time.
func (s *Sink[K]) enqueuer(cause workqueue.Cause, news bool) Enqueuer[K] {
	s.controller.stats.events.Add(1)
	return &enqueuer[K]{sink: s, cause: cause, news: news}
}

type enqueuer[K comparable] struct {
	sink  *Sink[K]
	cause workqueue.Cause
	news  bool
}

// Add implements [Enqueuer].
func (e *enqueuer[K]) Add(key K) { e.add(key, workqueue.AddOptions{}) }

// AddAfter implements [Enqueuer].
func (e *enqueuer[K]) AddAfter(key K, d time.Duration) { e.add(key, workqueue.AddOptions{After: d}) }

// AddRateLimited implements [Enqueuer].
func (e *enqueuer[K]) AddRateLimited(key K) { e.add(key, workqueue.AddOptions{RateLimited: true}) }

// add queues the key, or has it held back.
func (e *enqueuer[K]) add(key K, o workqueue.AddOptions) {
	o.Cause = e.cause
	if b := e.sink.backlog.Load(); b != nil {
		if b.Add(key, o, e.news) {
			e.sink.controller.stats.adds.Add(1)
			return
		}
		e.sink.backlog.Store(nil) // Somebody works now.
	}
	e.sink.controller.enqueue(key, o)
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

// Repeats is what [Source] speaks of: what is in the cache is told anew.
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
		return out.enqueuer(workqueue.Cause{
			Source: k.name, Event: event, Object: objectName(obj), ResourceVersion: obj.GetResourceVersion(),
			Time: time.Now(),
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
		h.OnDelete = func(gone informer.Deleted[T]) {
			k.handler.OnDelete(ctx, gone, cause("Delete", gone.Object, true))
		}
	}
	return h
}

func objectName(obj metav1.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}
