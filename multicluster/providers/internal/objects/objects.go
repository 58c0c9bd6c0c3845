// Package objects is the common part of providers whose clusters are described by objects of the local cluster. Such
// providers are handlers of an informer. They need no queue and no worker because they wait for nothing: the fleet
// itself connects to clusters.
package objects

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// Follow is the Run of such a provider. It calls observe for every object and for every new state of one. observe
// reports the object's clusters to the roster, with the object's key as the place. Follow makes the roster forget the
// place when the object is gone.
func Follow[T informer.Object](ctx context.Context, f *informer.Factory, o informer.InformerOptions, r *roster.Roster,
	fleet multicluster.Fleet, observe func(key string, obj T),
) error {
	objects, err := informer.ForOptions[T](f, o)
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	defer informer.Release(objects)
	r.Begin(fleet)
	registration, err := objects.AddHandler(informer.Handler[T]{
		OnAdd:    func(obj T, _ bool) { observe(informer.Key(obj), obj) },
		OnUpdate: func(_, obj T) { observe(informer.Key(obj), obj) },
		OnDelete: func(d informer.Deleted[T]) { r.Gone(d.Key) },
	}, informer.HandlerOptions{Name: "clusters", Resync: -1})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	// RemoveHandler delivers pending events first. When it returns, no call of observe is under way.
	defer func() { err = objects.RemoveHandler(context.WithoutCancel(ctx), registration) }()
	select {
	case <-registration.Synced():
		r.Complete(true)
	case <-registration.Done(): // The factory has stopped.
		return informer.ErrStopped
	case <-ctx.Done():
		return nil
	}
	r.Run(ctx)
	return nil
}
