package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/workqueue"
)

// Kind is the source of the changes that inf sees. h turns them into keys. The informer is run by whoever owns it, for
// example its factory.
func Kind[T informer.Object, K comparable](inf informer.Informer[T], h handler.EventHandler[T, K]) reconcile.Source[K] {
	k := &kind[T, K]{informer: inf, handler: h}
	switch {
	case misuse.IsNil(inf):
		k.name = reflect.TypeFor[T]().String()
		k.wrong = errors.New("the informer is nil: informer.For returns one")
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
	handler  handler.EventHandler[T, K]
	name     string
	wrong    error // what was wrong with the arguments of Kind, for Run to return
}

func (k *kind[T, K]) String() string { return k.name }

// Repeats implements reconcile.Source: an informer hands all that it holds to a new handler.
func (k *kind[T, K]) Repeats() bool { return true }

func (k *kind[T, K]) Health() error {
	if k.wrong != nil {
		return fmt.Errorf("watch %s: %w", k.name, k.wrong)
	}
	if h := k.informer.Health(); !h.Synced && h.Err != nil {
		return h.Err
	}
	if !k.informer.HasSynced() {
		return fmt.Errorf("%s: waiting for the initial list", k.name)
	}
	return nil
}

// Run registers the handler for as long as ctx lives.
func (k *kind[T, K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	if k.wrong != nil {
		return fmt.Errorf("watch %s: %w", k.name, k.wrong)
	}
	reg, err := k.informer.AddHandler(k.events(ctx, out), informer.HandlerOptions{Name: out.String()})
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
		klog.FromContext(ctx).Error(err, "Handler was still running when its source stopped", "resource", k.name)
	}
	return nil
}

// removalTimeout bounds the wait for a handler call in progress.
const removalTimeout = 10 * time.Second

func (k *kind[T, K]) events(ctx context.Context, out *reconcile.Sink[K]) informer.Handler[T] {
	cause := func(event string, obj T, changed bool) reconcile.Enqueuer[K] {
		c := workqueue.Cause{
			Source: k.name, Event: event, Object: informer.Key(obj), ResourceVersion: obj.GetResourceVersion(),
			Time: time.Now(),
		}
		if changed {
			return out.For(c)
		}
		return out.ForUnchanged(c)
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
