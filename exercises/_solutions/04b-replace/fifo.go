// Package fifo is the solution of task 04b.
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
	// Queued objects will be in the cache by the time that their deletion is handed out.
	for _, key := range f.order {
		if queued := f.changes[key]; !listed[key] {
			f.queue(kube.Event{Type: kube.Deleted, Object: queued[len(queued)-1].Object})
		}
	}
	for key, o := range f.cache.Objects {
		if !listed[key] && len(f.changes[key]) == 0 {
			f.queue(kube.Event{Type: kube.Deleted, Object: o})
		}
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
