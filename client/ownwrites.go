package client

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// WithOwner makes owner the one in whose name the writes with the returned context are made; see [Cluster.Ready].
// owner is any comparable value. Reads with the context rather return [ErrStale] than miss an own write. Package
// reconcile does this for every reconcile; a loop of your own that decides on what it reads can do the same.
func WithOwner(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, ownwrites.OwnerKey{}, owner)
}

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return ownwrites.OwnerFrom(ctx) }

// ObserveWrites returns a copy of config whose clients share one record of own writes: a [Cluster] made of it also
// sees what clientsets and dynamic clients made of it write. A manager does this for its own config.
func ObserveWrites(config *rest.Config) (*rest.Config, error) {
	if config == nil {
		return nil, fmt.Errorf("observe writes: %w", errNoConfig)
	}
	record, err := ownwrites.New(config)
	if err != nil {
		return nil, fmt.Errorf("observe writes: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Wrap(record.Wrap)
	return config, nil
}

// Follow has [Cluster.Ready] and [Cluster.Seen] of c wait for an informer of the resource that others read, by its
// lister, say. The informer has to follow every namespace that c writes to.
func Follow[T Object](c *Cluster, resource schema.GroupResource, inf informer.Informer[T]) {
	if c == nil || misuse.IsNil(inf) {
		panic("client: Follow: the client or the informer is nil")
	}
	cached.Follow(c.server.Record, resource, inf)
}

// Ready is nil when every cache of this client, and every informer given to [Follow], has seen all that was written
// in the name of owner (see [WithOwner]), and no such write has an unknown outcome. It is the gate for reconcilers
// that read by listers or informers, which know nothing of own writes: do not reconcile an owner before it is
// ready. Reads by the client need none.
//
// Errors: [ErrStale].
//
// Source: the consistency store of kube-controller-manager v1.37.1, KEP-5647.
func (c *Cluster) Ready(ctx context.Context, owner any) error {
	for _, l := range c.server.Record.All() {
		if w := l.DueOf(owner); w != nil {
			_ = l.Resolve(ctx, w) // When it fails the write stays in doubt, and is asked about again.
		}
	}
	return c.pending(owner, true)
}

// Seen is [Cluster.Ready] without the writes whose outcome is unknown. It is for reconcilers that may repeat such a
// write: the names of what they create are computed, or they delete what is too many.
//
// Errors: [ErrStale].
func (c *Cluster) Seen(owner any) error { return c.pending(owner, false) }

func (c *Cluster) pending(owner any, doubts bool) error {
	for _, l := range c.server.Record.All() {
		if p := l.PendingOf(owner, doubts); p != nil {
			return &StaleError{Resource: l.Name.String(), Key: p.Key, Wanted: p.Wanted, Seen: p.Seen, Cause: p.Lost}
		}
	}
	return nil
}
