package sliceset

import (
	"maps"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// generations tells this controller's changes of slices from those of others. It records the generation of each slice
// after the controller's last write. The zero value is ready for use.
//
// Concurrency: safe for concurrent use.
//
// Source: k8s.io/endpointslice v0.37.2 util/endpointslice_tracker.go
type generations struct {
	mu sync.Mutex
	// recorded has the generations, by key and UID of the slice. A slice that this controller deleted has the value
	// deleted.
	recorded map[types.NamespacedName]map[types.UID]int64
}

// deleted is greater than every generation.
const deleted = int64(1<<63 - 1)

// leave records the generation of a slice after a write.
func (g *generations) leave(key types.NamespacedName, uid types.UID, generation int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recorded == nil {
		g.recorded = map[types.NamespacedName]map[types.UID]int64{}
	}
	if g.recorded[key] == nil {
		g.recorded[key] = map[types.UID]int64{}
	}
	g.recorded[key][uid] = generation
}

// ours reports whether the slice is as this controller left it, or at an earlier generation.
func (g *generations) ours(key types.NamespacedName, slice *discoveryv1.EndpointSlice) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, known := g.recorded[key][slice.UID]
	return known && (left == deleted || slice.DeletionTimestamp == nil && slice.Generation <= left)
}

// gone forgets a slice that is no longer in the cache, and reports whether this controller deleted it.
func (g *generations) gone(key types.NamespacedName, uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.recorded[key][uid]
	delete(g.recorded[key], uid)
	return left == deleted
}

// keep forgets the slices of a key that are not in the cache: one that came and went in a gap of the watch has no
// event. Slices that this controller deleted stay until their event.
func (g *generations) keep(key types.NamespacedName, held []*discoveryv1.EndpointSlice) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.recorded[key], func(uid types.UID, left int64) bool {
		return left != deleted &&
			!slices.ContainsFunc(held, func(s *discoveryv1.EndpointSlice) bool { return s.UID == uid })
	})
}

// forget removes all records of a key.
func (g *generations) forget(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.recorded, key)
}
