package ownwrites

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Missed names an object that this process wrote in a state that a cache never showed: others changed or deleted it
// again in a gap of the watch. No event tells of that state, nor of its end.
type Missed struct {
	Resource schema.GroupResource
	Key      ObjectKey
}

// Waker makes a reader or writer of a state run again. Wakers are compared by ==: those that wake the same run must be
// equal.
type Waker interface {
	// Wake is called by the goroutine that applies changes to a cache. It must not block.
	Wake(Missed)
}

// readers are the wakers of those that read or wrote a state that some cache may never show.
type readers struct {
	mu sync.Mutex
	// wakers are called when a cache misses the state. Invariant: empty once missed.
	wakers map[Waker]struct{}
	missed bool
}

// add notes that w, which may be nil, knows the state. It returns false if a cache has missed it already: then the
// caller must not act on it.
func (k *readers) add(w Waker) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.missed || w == nil {
		return !k.missed
	}
	if k.wakers == nil {
		k.wakers = map[Waker]struct{}{}
	}
	k.wakers[w] = struct{}{}
	return true
}

// remove notes that w knows a later state. It reports whether no waker is left.
func (k *readers) remove(w Waker) (empty bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.wakers, w)
	return len(k.wakers) == 0
}

func (k *readers) hasMissed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.missed
}

// miss calls all wakers.
func (k *readers) miss(m Missed) {
	k.mu.Lock()
	wakers := k.wakers
	k.wakers, k.missed = nil, true
	k.mu.Unlock()
	for w := range wakers {
		w.Wake(m)
	}
}

// Read notes that w, which may be nil, was shown all entries. It returns false if a cache missed one of them: then the
// caller must read again.
func Read(shown []*Entry, w Waker) bool {
	for _, e := range shown {
		if !e.readers.add(w) {
			return false
		}
	}
	return true
}
