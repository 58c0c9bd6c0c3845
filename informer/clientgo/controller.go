package clientgo

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	peer "k8s.io/client-go/tools/cache"
)

// dummyController is what a shared informer has as its controller: it tells, and does nothing.
type dummyController struct{ inf *sharedInformer }

func (dummyController) RunWithContext(context.Context)    {}
func (dummyController) Run(<-chan struct{})               {}
func (c dummyController) HasSynced() bool                 { return c.inf.HasSynced() }
func (c dummyController) HasSyncedChecker() DoneChecker   { return c.inf.HasSyncedChecker() }
func (c dummyController) LastSyncResourceVersion() string { return c.inf.LastSyncResourceVersion() }

// controller is that of an informer with one handler.
type controller struct {
	*sharedInformer
	// handler is nil when none was given.
	handler ResourceEventHandlerRegistration
}

// HasSynced says that the store is filled and the handler was told everything.
func (c controller) HasSynced() bool { return IsDone(c.HasSyncedChecker()) }

func (c controller) HasSyncedChecker() DoneChecker {
	if c.handler != nil {
		return c.handler.HasSyncedChecker()
	}
	return c.sharedInformer.HasSyncedChecker()
}

// NewInformerWithOptions returns a store that is kept up to date while the controller runs, and tells one handler.
// The store is an Indexer. Unlike client-go's the handler is not called by the goroutine that writes the store: a
// slow handler does not hold it up.
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
