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

// Kind returns a source that passes the events of an informer to h, which turns them into keys. The source does not run
// the informer. The owner of the informer does, for example a factory.
func Kind[T informer.Object, K comparable](inf informer.Informer[T], h handler.EventHandler[T, K]) reconcile.Source[K] {
	k := &kind[T, K]{informer: inf, handler: h}
	switch {
	case misuse.IsNil(inf):
		k.name = reflect.TypeFor[T]().String()
		k.invalid = errors.New("the informer is nil: informer.For returns one")
	case h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil:
		k.name = inf.Health().Resource
		k.invalid = errors.New(
			"the handler has no function: EnqueueObject, EnqueueOwner and EnqueueMapped make handlers")
	default:
		k.name = inf.Health().Resource
	}
	return k
}

type kind[T informer.Object, K comparable] struct {
	informer informer.Informer[T]
	handler  handler.EventHandler[T, K]
	name     string
	invalid  error // the error in the arguments of Kind, which Run returns
}

func (k *kind[T, K]) String() string { return k.name }

// Repeats returns true: an informer delivers its whole cache to a new handler.
func (k *kind[T, K]) Repeats() bool { return true }

func (k *kind[T, K]) Health() error {
	if k.invalid != nil {
		return fmt.Errorf("watch %s: %w", k.name, k.invalid)
	}
	if h := k.informer.Health(); !h.Synced && h.Err != nil {
		return h.Err
	}
	if !k.informer.HasSynced() {
		return fmt.Errorf("%s: waiting for the initial list", k.name)
	}
	return nil
}

// Run registers the handler until ctx is done.
func (k *kind[T, K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	if k.invalid != nil {
		return fmt.Errorf("watch %s: %w", k.name, k.invalid)
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
	// Events that are still buffered may be lost: the controller stops, and starts no key. But no call of the handler
	// may be running when Run returns.
	removal, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	if err := k.informer.RemoveHandler(removal, reg); err != nil {
		klog.FromContext(ctx).Error(err, "Handler was still running when its source stopped", "resource", k.name)
	}
	return nil
}

// removalTimeout bounds the wait for a running call of the handler.
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
		return out.LowPriority(c)
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
