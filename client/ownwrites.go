package client

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/writes"
)

// ErrStale reports that the cache does not show yet what this process wrote. See [writes.ErrStale].
var ErrStale = writes.ErrStale

// StaleError is the [ErrStale] of one read.
type StaleError = writes.StaleError

// WithOwner returns a context for reads and writes of owner, which may be any comparable value. Its reads return
// [ErrStale] rather than miss an own write, and [Cluster.Ready] looks for its writes. Package reconcile does this for
// every reconcile; a loop of your own that decides on what it reads can do the same.
func WithOwner(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, writes.OwnerKey, owner)
}

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return writes.OwnerFrom(ctx) }

// ObserveWrites returns a copy of config whose clients share one record of own writes: a [Cluster] made from the copy
// also shows what clientsets and dynamic clients made from the copy write. A manager does this for its own config.
func ObserveWrites(config *rest.Config) (*rest.Config, error) {
	if config == nil {
		return nil, fmt.Errorf("observe writes: %w", errNoConfig)
	}
	record, err := writes.New(config)
	if err != nil {
		return nil, fmt.Errorf("observe writes: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Wrap(record.Wrap)
	return config, nil
}

// TrackInformer makes [Cluster.Ready] and [Cluster.Seen] of c wait for an informer of the resource that is read without
// c, by a lister for example. The informer has to follow every namespace that c writes to.
func TrackInformer[T Object](c *Cluster, resource schema.GroupResource, inf informer.Informer[T]) {
	if c == nil || misuse.IsNil(inf) {
		panic("client: TrackInformer: the client or the informer is nil")
	}
	cached.Track(c.server.Record.Resource(resource), inf)
}

// Ready returns nil when every cache of this client, and every informer given to [TrackInformer], has seen all writes
// of owner (see [WithOwner]), and no such write has an unknown outcome. It is the gate for reconcilers that read by
// listers or informers, which do not show own writes: do not reconcile an owner before it is ready. Reads by the client
// need none.
//
// Errors: [ErrStale].
//
// Source: the consistency store of kube-controller-manager v1.37.2, KEP-5647.
func (c *Cluster) Ready(ctx context.Context, owner any) error {
	return c.server.Record.Ready(ctx, owner)
}

// Seen is [Cluster.Ready] without the writes whose outcome is unknown. It is for reconcilers that can safely repeat
// such a write, because they compute the names of the objects that they create, or because they delete surplus objects.
//
// Errors: [ErrStale].
func (c *Cluster) Seen(owner any) error { return c.server.Record.Seen(owner) }
