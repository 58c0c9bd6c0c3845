package providers

import (
	"context"
	"fmt"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/multicluster"
)

// Provider announces the clusters that it finds. It connects to none of them.
type Provider struct {
	name   string
	roster roster
	find   func(ctx context.Context) error
}

// Name implements the optional method of multicluster.Provider.
func (p *Provider) Name() string { return p.name }

// Health reports what cannot be announced, and why. The status of a cluster reports that it is not ready or does not
// answer.
func (p *Provider) Health() error { return p.roster.health() }

// Run implements multicluster.Provider.
func (p *Provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	p.roster.begin(fleet)
	return p.find(ctx)
}

// follow finds the clusters that objects of the local cluster describe. It calls observe for every object and for every
// new state of one; observe reports the object's clusters to the roster, with the object's key as the place. The
// provider is a handler of an informer. It needs no queue and no worker because it waits for nothing: the fleet itself
// connects to clusters.
func follow[T informer.Object](ctx context.Context, p *Provider, f *informer.Factory, o informer.InformerOptions,
	observe func(key string, obj T),
) error {
	objects, err := informer.ForOptions[T](f, o)
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	defer informer.Release(objects)
	registration, err := objects.AddHandler(informer.Handler[T]{
		OnAdd:    func(obj T, _ bool) { observe(informer.Key(obj), obj) },
		OnUpdate: func(_, obj T) { observe(informer.Key(obj), obj) },
		OnDelete: func(d informer.Deleted[T]) { p.roster.gone(d.Key) },
	}, informer.HandlerOptions{Name: "clusters", Resync: -1})
	if err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	// RemoveHandler delivers pending events first. When it returns, no call of observe is under way.
	defer func() { err = objects.RemoveHandler(context.WithoutCancel(ctx), registration) }()
	select {
	case <-registration.Synced():
		p.roster.complete(true)
	case <-registration.Done(): // The factory has stopped.
		return informer.ErrStopped
	case <-ctx.Done():
		return nil
	}
	p.roster.run(ctx)
	return nil
}
