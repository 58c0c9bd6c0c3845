package serving

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/reconcile"
)

// Services is a set of Services. The zero value is empty.
//
// Concurrency: safe for concurrent use.
type Services struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool // every value is true
}

// Set adds the Service if in is true, and otherwise removes it.
func (s *Services) Set(key types.NamespacedName, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !in {
		delete(s.keys, key)
		return
	}
	if s.keys == nil {
		s.keys = make(map[types.NamespacedName]bool)
	}
	s.keys[key] = true
}

// Has reports whether the Service is in the set.
func (s *Services) Has(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

// All returns the Services in the set, in no particular order.
func (s *Services) All() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.keys))
}

// Gate postpones the sync of a Service until the caches show its last writes: a plan made before that would be refused,
// or repeat what is done.
//
// Concurrency: safe for concurrent use.
type Gate struct {
	client  *client.Cluster
	waiting Services
}

// NewGate returns a gate for what c writes.
func NewGate(c *client.Cluster) *Gate { return &Gate{client: c} }

// Ready is a function for [reconcile.Options].Ready.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpoint/endpoints_tracker.go and k8s.io/endpointslice v0.37.2
// util/endpointslice_tracker.go; there the wait is an error, with backoff
func (g *Gate) Ready(ctx context.Context, key reconcile.Request) error {
	g.waiting.Set(key.NamespacedName, true) // before the cache is read, so that no event is missed
	err := g.client.Seen(client.OwnerFrom(ctx))
	if err == nil {
		g.waiting.Set(key.NamespacedName, false)
	}
	return err
}

// Wake queues a Service whose sync waits. Event handlers call it for every change of what is written for the Service.
func (g *Gate) Wake(key types.NamespacedName, q reconcile.Enqueuer[reconcile.Request]) {
	if g.waiting.Has(key) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}
