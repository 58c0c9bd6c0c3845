// Package fifo is task 04b: objects in the cache that no longer exist.
//
// A FIFO stands between a watch and a cache. It holds a list of changes for each key, and hands out one key at a time.
// After the watch has broken, a list of all objects arrives, and Replace turns it into changes.
//
// Users find objects in the cache that the server does not have. It happens when a watch breaks while the queue is
// long, and such an object stays until the next list. client-go v0.26.1 has this bug in tools/cache/delta_fifo.go, and
// kubernetes/kubernetes#115658 reports it.
//
// Run the tests, read the code, and find out for which objects no deletion is queued. Before you change anything, say
// what the cache will hold when the queue is empty.
package fifo

import (
	"slices"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// FIFO hands out changes key by key.
type FIFO struct {
	// order has the keys in the order in which they were first queued, and changes has the changes of each key. A key
	// is in both or in neither.
	order   []string
	changes map[string][]kube.Event
	// cache receives the changes. It has the result of all that were handed out.
	cache *kube.Store
}

// New returns an empty FIFO in front of the cache.
func New(cache *kube.Store) *FIFO {
	return &FIFO{changes: map[string][]kube.Event{}, cache: cache}
}

// Set queues a new state.
func (f *FIFO) Set(o *kube.Object) { f.queue(kube.Event{Type: kube.Modified, Object: o}) }

// Delete queues a deletion, unless the object is in neither the cache nor the queue.
func (f *FIFO) Delete(o *kube.Object) {
	_, known := f.cache.Objects[o.Key()]
	if known || len(f.changes[o.Key()]) > 0 {
		f.queue(kube.Event{Type: kube.Deleted, Object: o})
	}
}

// Replace queues the changes that follow from a list: these objects exist, and no others.
func (f *FIFO) Replace(list []*kube.Object) {
	listed := map[string]bool{}
	for _, o := range list {
		listed[o.Key()] = true
		f.Set(o)
	}
	for key, o := range f.cache.Objects {
		if listed[key] {
			continue
		}
		if queued := f.changes[key]; len(queued) > 0 {
			o = queued[len(queued)-1].Object // It is newer than the cached state.
		}
		f.queue(kube.Event{Type: kube.Deleted, Object: o})
	}
}

// queue appends a change. It drops a deletion that follows a deletion.
func (f *FIFO) queue(e kube.Event) {
	key := e.Object.Key()
	queued := f.changes[key]
	if n := len(queued); n > 0 && queued[n-1].Type == kube.Deleted && e.Type == kube.Deleted {
		return
	}
	if len(queued) == 0 {
		f.order = append(f.order, key)
	}
	f.changes[key] = append(queued, e)
}

// Pop takes the first key's changes, applies them to the cache, and returns them. It returns nil if the queue is empty.
func (f *FIFO) Pop() []kube.Event {
	if len(f.order) == 0 {
		return nil
	}
	key := f.order[0]
	f.order = slices.Delete(f.order, 0, 1)
	changes := f.changes[key]
	delete(f.changes, key)
	for _, e := range changes {
		f.cache.Apply(e)
	}
	return changes
}
