package writes

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// readers has the wakers of the reconciles that read or wrote a state. A cache misses the state if its watch had a gap
// and another client changed or deleted the object in that gap. Then no event shows that the state existed, or that it
// ended, so its readers have to run again.
type readers struct {
	mu sync.Mutex
	// wakers are called when a cache misses the state. Invariant: empty once missed.
	wakers map[Waker]struct{}
	missed bool
}

// add registers w, which may be nil. It returns false if a cache has missed the state already: then the caller must not
// act on it.
func (r *readers) add(w Waker) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missed || w == nil {
		return !r.missed
	}
	if r.wakers == nil {
		r.wakers = map[Waker]struct{}{}
	}
	r.wakers[w] = struct{}{}
	return true
}

// remove takes w out, because it knows a later state by now. It reports whether no waker is left.
func (r *readers) remove(w Waker) (empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.wakers, w)
	return len(r.wakers) == 0
}

func (r *readers) hasMissed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missed
}

// wake calls all wakers, because a cache has missed the state of that object.
func (r *readers) wake(resource schema.GroupResource, key types.NamespacedName) {
	r.mu.Lock()
	wakers := r.wakers
	r.wakers, r.missed = nil, true
	r.mu.Unlock()
	for w := range wakers {
		w.Wake(resource, key)
	}
}

// Shown registers the waker of ctx with the entries that a read is about to return. It returns false if a cache has
// missed one of them: then the caller must read again.
func Shown(ctx context.Context, entries []*Entry) bool {
	w := wakerFrom(ctx)
	for _, e := range entries {
		if !e.readers.add(w) {
			return false
		}
	}
	return true
}
