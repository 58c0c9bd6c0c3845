package endpointslice

import (
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// ledger remembers what this controller last wrote of each slice. From it follows whether the cache is behind, so that
// a plan made from it would be refused or repeat what is done, and whether a change of a slice is our own.
//
// Concurrency: safe for concurrent use.
//
// Source: k8s.io/endpointslice v0.37.2 util/endpointslice_tracker.go, which goes by generations only
type ledger struct {
	mu sync.Mutex
	// services has an entry for each Service of which a slice was written and not forgotten.
	services map[types.NamespacedName]*entry
}

// entry is what was written for one Service.
type entry struct {
	slices map[types.UID]lastWrite
	// floor is the cache's resource version at the last write. If the cache is older than that, the server's history
	// has gone back, and with it what we wrote.
	floor string
	// awaited says that a sync was put off until the cache has moved.
	awaited bool
}

// lastWrite is what the last write to a slice left there.
type lastWrite struct {
	generation int64
	version    string
	// deleted: the slice is to go. Generation and version are then of no account.
	deleted bool
}

func newLedger() *ledger { return &ledger{services: make(map[types.NamespacedName]*entry)} }

// wrote notes the answer to a create or an update, with the cache's resource version when it was sent.
func (l *ledger) wrote(key types.NamespacedName, slice *discoveryv1.EndpointSlice, floor string) {
	l.note(key, slice.UID, lastWrite{generation: slice.Generation, version: slice.ResourceVersion}, floor)
}

// deleted notes that a slice was deleted, likewise.
func (l *ledger) deleted(key types.NamespacedName, uid types.UID, floor string) {
	l.note(key, uid, lastWrite{deleted: true}, floor)
}

func (l *ledger) note(key types.NamespacedName, uid types.UID, w lastWrite, floor string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.services[key]
	if e == nil {
		e = &entry{slices: make(map[types.UID]lastWrite)}
		l.services[key] = e
	}
	e.slices[uid], e.floor = w, floor
}

// gone notes that the cache has dropped a slice, and reports whether that was our doing.
func (l *ledger) gone(key types.NamespacedName, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.services[key]
	if e == nil {
		return false
	}
	w := e.slices[uid]
	delete(e.slices, uid)
	return w.deleted
}

// expects reports whether the slice is what we left, or a state on the way to it.
func (l *ledger) expects(key types.NamespacedName, slice *discoveryv1.EndpointSlice) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.services[key]
	if e == nil {
		return false
	}
	w, known := e.slices[slice.UID]
	if w.deleted {
		return true
	}
	return known && slice.DeletionTimestamp == nil && slice.Generation <= w.generation
}

// await marks the Service: the next change of its slices in the cache is to be told to [ledger.awaited]. It is called
// before the cache is looked at, so that no change is missed; [ledger.lacks] takes the mark away again.
func (l *ledger) await(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.services[key]; e != nil {
		e.awaited = true
	}
}

// awaited reports whether a sync waits for a change of the Service's slices in the cache.
func (l *ledger) awaited(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.services[key]
	return e != nil && e.awaited
}

// lacks reports whether a cache that is complete up to the resource version watermark, and shows these slices for the
// Service, may lack one of our writes. If not, nobody waits any more.
func (l *ledger) lacks(key types.NamespacedName, watermark string, cached []*discoveryv1.EndpointSlice) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.services[key]
	if e == nil {
		return false
	}
	if c, err := resourceversion.CompareResourceVersion(watermark, e.floor); err == nil && c < 0 {
		delete(l.services, key)
		return false
	}
	byUID := make(map[types.UID]*discoveryv1.EndpointSlice, len(cached))
	for _, slice := range cached {
		byUID[slice.UID] = slice
	}
	for uid, w := range e.slices {
		cached := byUID[uid]
		if w.missingFrom(cached, watermark) {
			return true
		}
		if cached == nil && !w.deleted {
			delete(e.slices, uid) // It came and went in a gap of the watch: no event will tell that it is gone.
		}
	}
	e.awaited = false
	return false
}

// missingFrom reports whether a cache that shows cached (nil if nothing) and is complete up to the resource version
// watermark may lack the write. Where resource versions are not comparable, the generation tells.
func (w lastWrite) missingFrom(cached *discoveryv1.EndpointSlice, watermark string) bool {
	if w.deleted {
		// What a finalizer holds back stays in the cache, marked: then the cache holds the delete.
		return cached != nil && cached.DeletionTimestamp == nil
	}
	if c, err := resourceversion.CompareResourceVersion(watermark, w.version); err == nil {
		return c < 0
	}
	return cached == nil || cached.Generation < w.generation
}

// forget drops what is known of a Service that is gone.
func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.services, key)
}
