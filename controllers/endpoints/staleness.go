package endpoints

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ownWrites remembers the last write to each Endpoints until the cache has seen it. A plan made from older Endpoints
// would be refused by the API server, or repeat what is done.
//
// Concurrency: safe for concurrent use.
type ownWrites struct {
	mu sync.Mutex
	// pending has an entry for each Endpoints whose last write the cache is not known to hold.
	pending map[types.NamespacedName]ownWrite
}

// ownWrite is a write that has been answered.
type ownWrite struct {
	// before and after are the resource versions around a create (before is empty) or an update.
	before, after string
	// removed is the UID of what a delete removed; before and after are then empty.
	removed types.UID
	// awaited says that a sync was put off until the cache has moved.
	awaited bool
}

func newOwnWrites() *ownWrites {
	return &ownWrites{pending: make(map[types.NamespacedName]ownWrite)}
}

// wrote notes a create or an update. One that the API server found to change nothing is none.
func (w *ownWrites) wrote(key types.NamespacedName, before, after string) {
	if before == after {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key] = ownWrite{before: before, after: after}
}

// removed notes a delete of what the cache held, or nil, when it was sent. It takes the place of all writes before.
func (w *ownWrites) removed(key types.NamespacedName, held *corev1.Endpoints) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
	if held != nil {
		w.pending[key] = ownWrite{removed: held.UID}
	}
}

// gone notes that the cache has dropped the Endpoints with that UID: a delete of them is settled.
func (w *ownWrites) gone(key types.NamespacedName, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if uid != "" && w.pending[key].removed == uid {
		delete(w.pending, key)
	}
}

// await returns the last write that the cache may not hold yet, and marks it: the next change of the cache is to be
// told to [ownWrites.awaited]. The mark is set before the caller looks at the cache, so no change is missed.
func (w *ownWrites) await(key types.NamespacedName) (ownWrite, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	write, found := w.pending[key]
	if found {
		write.awaited = true
		w.pending[key] = write
	}
	return write, found
}

// awaited reports whether a sync waits for a change of the Endpoints in the cache.
func (w *ownWrites) awaited(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending[key].awaited
}

// settle forgets the write: the cache holds it.
func (w *ownWrites) settle(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
}

// missingFrom reports whether a cache that shows cached (nil if nothing) and is complete up to the resource version
// watermark may lack the write. Where resource versions are not comparable, it lacks it if it still shows what was
// there before.
func (w ownWrite) missingFrom(cached *corev1.Endpoints, watermark string) bool {
	if w.removed != "" {
		// What a finalizer holds back stays in the cache, marked: then the cache holds the delete.
		return cached != nil && cached.UID == w.removed && cached.DeletionTimestamp == nil
	}
	if c, err := resourceversion.CompareResourceVersion(watermark, w.after); err == nil {
		return c < 0
	}
	if cached == nil {
		return w.before == ""
	}
	return cached.ResourceVersion == w.before
}
