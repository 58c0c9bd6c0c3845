package builder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// attach gets the informers and creates the sources.
func (b *Builder) attach(p *parts) error {
	for _, in := range b.inputs {
		var owner *ownership
		h := in.handler
		if h == nil {
			owner = &ownership{
				kind: b.calls.Kind(), every: in.options.EveryOwner, client: b.manager.GetClient(),
			}
			owners := handler.EnqueueMapped(owner.requests)
			h = &owners
		}
		filtered := *h
		if filters := append(b.filters[:len(b.filters):len(b.filters)], in.options.Predicates...); len(filters) > 0 {
			filtered = handler.Filter(filtered, filters...)
		}
		source, releaseInformer, err := sourceOf(b.manager, in, filtered)
		if err != nil {
			return fmt.Errorf("%s(%T): %w", in.call, in.object, err)
		}
		p.releaseInformers = append(p.releaseInformers, releaseInformer)
		if owner != nil {
			source = &owned{Source: source, owner: owner}
		}
		if b.syncTimeout > 0 {
			source = &timed{Source: source, timeout: b.syncTimeout}
		}
		p.sources = append(p.sources, source)
	}
	p.sources = append(p.sources, b.sources...)
	return nil
}

// sourceOf returns the source of one input, and a function that releases its cache. Full objects and metadata have
// different caches.
func sourceOf(m *manager.Manager, in input, h HandlerFuncs) (reconcile.Source[reconcile.Request], func(), error) {
	example := in.object
	if in.options.OnlyMetadata {
		bare := &metav1.PartialObjectMetadata{}
		bare.SetGroupVersionKind(in.kind)
		example = bare
	}
	o := in.options.Restrict(m.CacheOf(example))
	o.Kind = in.kind
	inf, err := informer.ForKind(m.Informers(), example, o)
	if err != nil {
		return nil, nil, err
	}
	return source.Kind(inf, h), func() { informer.Release(inf) }, nil
}

// ownership turns an object into requests for its owners of one kind.
type ownership struct {
	kind   schema.GroupVersionKind
	every  bool
	client *client.Cluster

	mu sync.Mutex
	// known means that the server has answered whether the owners live in namespaces. Invariant: it is true before the
	// first event is handled.
	known, namespaced bool
	err               error // why there is no answer yet
}

// requests returns a request for each owner.
func (o *ownership) requests(_ context.Context, obj informer.Object) []reconcile.Request {
	return handler.OwnersOf(obj, o.kind.GroupKind(),
		handler.OwnerOptions{ClusterScoped: !o.hasNamespace(), EveryOwner: o.every})
}

func (o *ownership) hasNamespace() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.namespaced
}

// resolve asks the server until it has succeeded once. It reports whether the answer is known.
func (o *ownership) resolve(ctx context.Context) bool {
	o.mu.Lock()
	known := o.known
	o.mu.Unlock()
	if known {
		return true
	}
	example := &metav1.PartialObjectMetadata{}
	example.SetGroupVersionKind(o.kind)
	namespaced, err := o.client.IsObjectNamespaced(ctx, example) // a request, so not under the lock
	o.mu.Lock()
	defer o.mu.Unlock()
	o.namespaced, o.known, o.err = namespaced, err == nil, err
	return o.known
}

// askInterval is the time between two attempts to resolve whether owners have namespaces.
const askInterval = time.Second

// owned is a source that first finds out whether the owners live in namespaces.
type owned struct {
	reconcile.Source[reconcile.Request]
	owner *ownership
}

// Run implements reconcile.Source.
func (s *owned) Run(ctx context.Context, out *reconcile.Sink[reconcile.Request], synced func()) error {
	for !s.owner.resolve(ctx) {
		pause := time.NewTimer(askInterval)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
	return s.Source.Run(ctx, out, synced)
}

// Health implements reconcile.Source.
func (s *owned) Health() error {
	s.owner.mu.Lock()
	err := s.owner.err
	s.owner.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: the kind of their owners: %w", s.Source, err)
	}
	return s.Source.Health()
}

// timed is a source that fails if it does not sync within a timeout.
type timed struct {
	reconcile.Source[reconcile.Request]
	timeout time.Duration
}

// Run implements reconcile.Source.
func (s *timed) Run(ctx context.Context, out *reconcile.Sink[reconcile.Request], synced func()) error {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(s.timeout, func() {
		why := s.Health()
		if why == nil {
			why = errors.New("the initial objects are still being handled")
		}
		cancel(fmt.Errorf("%s did not sync within %v: %w", s.Source, s.timeout, why))
	})
	defer late.Stop()
	err := s.Source.Run(own, out, func() {
		if late.Stop() {
			synced()
		}
	})
	if err == nil && ctx.Err() == nil && own.Err() != nil {
		return context.Cause(own)
	}
	return err
}
