package controllerruntime

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/informer"
)

// source is one informer of objects in any representation.
type source interface {
	get(key client.ObjectKey) (client.Object, bool)
	list(namespace string, sel labels.Selector) []client.Object
	byIndex(name, value string) ([]client.Object, error)
	addIndex(name string, f func(client.Object) ([]string, error)) error
	addHandler(h toolscache.ResourceEventHandler, resync time.Duration) (*informer.Registration, error)
	removeHandler(ctx context.Context, r *informer.Registration) error
	synced() <-chan struct{}
	waitForSync(ctx context.Context) error
	health() informer.Health
	release()
}

type typed[T informer.Object] struct{ inf informer.Informer[T] }

func newSource[T informer.Object](f *informer.Factory, o informer.InformerOptions) (source, error) {
	inf, err := informer.ForOptions[T](f, o)
	if err != nil {
		return nil, err
	}
	return typed[T]{inf}, nil
}

func (t typed[T]) get(key client.ObjectKey) (client.Object, bool) {
	return t.inf.Get(key.Namespace, key.Name)
}

func (t typed[T]) list(namespace string, sel labels.Selector) []client.Object {
	return objects(t.inf.List(namespace, sel))
}

func (t typed[T]) byIndex(name, value string) ([]client.Object, error) {
	objs, err := t.inf.ByIndex(name, value)
	return objects(objs), err
}

func (t typed[T]) addIndex(name string, f func(client.Object) ([]string, error)) error {
	return t.inf.AddIndex(name, func(obj T) ([]string, error) { return f(obj) })
}

func (t typed[T]) synced() <-chan struct{}               { return t.inf.Synced() }
func (t typed[T]) waitForSync(ctx context.Context) error { return t.inf.WaitForSync(ctx) }
func (t typed[T]) health() informer.Health               { return t.inf.Health() }
func (t typed[T]) release()                              { informer.Release(t.inf) }

// addHandler adds one of client-go's handlers. The handler gets every state: controller-runtime's predicates see the
// old and new object of each change, and must not miss a change that a later one reverts.
func (t typed[T]) addHandler(h toolscache.ResourceEventHandler, resync time.Duration) (*informer.Registration, error) {
	return t.inf.AddHandler(informer.Handler[T]{
		OnAdd: func(obj T, initial bool) {
			defer utilruntime.HandleCrash()
			h.OnAdd(obj, initial)
		},
		OnUpdate: func(old, obj T) {
			defer utilruntime.HandleCrash()
			h.OnUpdate(old, obj)
		},
		OnDelete: func(d informer.Deleted[T]) {
			defer utilruntime.HandleCrash()
			if d.Stale {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: d.Key, Obj: d.Object})
				return
			}
			h.OnDelete(d.Object)
		},
	}, informer.HandlerOptions{MaxLag: -1, Resync: resync})
}

func (t typed[T]) removeHandler(ctx context.Context, r *informer.Registration) error {
	return t.inf.RemoveHandler(ctx, r)
}

func objects[T informer.Object](all []T) []client.Object {
	if all == nil {
		return nil
	}
	objs := make([]client.Object, len(all))
	for i, obj := range all {
		objs[i] = obj
	}
	return objs
}
