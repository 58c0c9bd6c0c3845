package endpointslice

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// hintedServices are those whose endpoints have hints by the zones' shares, which change with the nodes. The zero value
// is ready for use.
//
// Concurrency: safe for concurrent use.
type hintedServices struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool // only true
}

func (h *hintedServices) set(key types.NamespacedName, hinted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !hinted {
		delete(h.keys, key)
		return
	}
	if h.keys == nil {
		h.keys = make(map[types.NamespacedName]bool)
	}
	h.keys[key] = true
}

func (h *hintedServices) has(key types.NamespacedName) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keys[key]
}

func (h *hintedServices) all() []types.NamespacedName {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.keys))
}
