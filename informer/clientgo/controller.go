package clientgo

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	peer "k8s.io/client-go/tools/cache"
)

// controller is client-go's Controller over one of our informers.
type controller struct {
	run func(context.Context)
	inf *sharedInformer
	// handler is that of NewInformerWithOptions; nil for the controller of a shared informer.
	handler ResourceEventHandlerRegistration
}

func (c controller) RunWithContext(ctx context.Context) { c.run(ctx) }

func (c controller) Run(stop <-chan struct{}) { c.inf.Run(stop) }

// HasSynced says, when there is one handler, that it was told everything.
func (c controller) HasSynced() bool {
	if c.handler != nil {
		return c.handler.HasSynced()
	}
	return c.inf.HasSynced()
}

func (c controller) HasSyncedChecker() DoneChecker {
	if c.handler != nil {
		return c.handler.HasSyncedChecker()
	}
	return c.inf.HasSyncedChecker()
}

func (c controller) LastSyncResourceVersion() string { return c.inf.LastSyncResourceVersion() }

// NewInformerWithOptions returns a store that is kept up to date while the controller runs, and tells one handler. The store is
// an Indexer. Unlike client-go's the handler is not called by the goroutine that writes the store: a slow handler does not
// hold it up.
func NewInformerWithOptions(o InformerOptions) (Store, Controller) {
	inf := NewSharedIndexInformerWithOptions(o.ListerWatcher, o.ObjectType, SharedIndexInformerOptions{
		ResyncPeriod: o.ResyncPeriod, Indexers: o.Indexers,
	}).(*sharedInformer)
	inf.transform = o.Transform
	c := controller{run: inf.RunWithContext, inf: inf}
	if o.Handler != nil {
		var err error
		if c.handler, err = inf.AddEventHandler(o.Handler); err != nil {
			panic(err) // The informer cannot have stopped.
		}
	}
	return inf.store, c
}

// NewInformer is NewInformerWithOptions without indexes.
func NewInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: example, ResyncPeriod: resync, Handler: h})
}

// NewIndexerInformer is NewInformerWithOptions with indexes.
func NewIndexerInformer(lw ListerWatcher, example runtime.Object, resync time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	s, c := NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: example, ResyncPeriod: resync, Handler: h, Indexers: indexers})
	return s.(Indexer), c
}

var (
	_ peer.SharedIndexInformer              = (*sharedInformer)(nil)
	_ peer.ResourceEventHandlerRegistration = registration{}
	_ peer.Controller                       = controller{}
)
