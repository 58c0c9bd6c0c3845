// Package objects is the common part of providers whose clusters are described by objects of the local cluster. They
// are handlers of an informer. They need no queue and no worker because they wait for nothing: the fleet itself
// connects to clusters.
package objects

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// Follow is the Run of such a provider. see is called for every object there is, and for every new state of one; it
// tells the roster what is in it, under the object's key, which the roster forgets when the object is gone.
func Follow[T informer.Object](ctx context.Context, f *informer.Factory, o informer.InformerOptions, r *roster.Roster,
	fleet multicluster.Fleet, see func(key string, obj T),
) error {
	objects, err := informer.ForOptions[T](f, o)
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	defer informer.Release(objects)
	r.Begin(fleet)
	registration, err := objects.AddHandler(informer.Handler[T]{
		OnAdd:    func(obj T, _ bool) { see(informer.Key(obj), obj) },
		OnUpdate: func(_, obj T) { see(informer.Key(obj), obj) },
		OnDelete: func(d informer.Deleted[T]) { r.Gone(d.Key) },
	}, informer.HandlerOptions{Name: "clusters", Resync: -1})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	// What was seen is told to the end: then nobody is in a call of see any more.
	defer func() { err = objects.RemoveHandler(context.WithoutCancel(ctx), registration) }()
	select {
	case <-registration.Synced():
		r.Complete(true)
	case <-registration.Done(): // the factory has stopped
		return informer.ErrStopped
	case <-ctx.Done():
		return nil
	}
	r.Run(ctx)
	return nil
}
