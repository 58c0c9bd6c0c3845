package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/loop"
	"github.com/flyball-dev/flyball/reconcile/internal/deadline"
	"github.com/flyball-dev/flyball/workqueue"
)

// handle is what package multicluster sees of a controller.
type handle[K comparable] struct{ *Controller[K] }

func init() {
	loop.Provide(func(controller any) any { return controller.(interface{ handle() any }).handle() })
}

func (c *Controller[K]) handle() any { return handle[K]{c} }

// Set implements loop.Handle.
func (h handle[K]) Set(s loop.Settings[K]) {
	h.rooms.outer = s
	h.rooms.deadlines = deadline.New(deadline.Limits{Slow: s.SlowAfter, Hung: h.options.HungAfter})
}

// Add implements loop.Handle.
func (h handle[K]) Add(key K, o workqueue.AddOptions) { h.enqueue(key, o) }

// Alive implements loop.Handle.
func (h handle[K]) Alive() error { return h.alive() }

// Hung implements loop.Handle.
func (h handle[K]) Hung() map[K]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	hung := map[K]time.Time{}
	for _, e := range h.keys.running {
		if e.run.Hung {
			hung[e.key] = e.run.Began
		}
	}
	return hung
}

// Forget implements loop.Handle.
func (h handle[K]) Forget(key K) {
	h.mu.Lock()
	e := h.keys.entries[key]
	runs := e != nil && e.place != none
	if runs {
		e.forgotten = true
	}
	h.mu.Unlock()
	if !runs {
		h.forgotten(key)
	}
}

// ForgetAll implements loop.Handle. Keys in flight come first: what one leaves behind that ends after that goes with
// its end.
func (h handle[K]) ForgetAll(match func(key K) bool) {
	h.mu.Lock()
	keys := slices.Collect(maps.Keys(h.keys.entries))
	h.mu.Unlock()
	for _, key := range keys {
		if match(key) {
			h.Forget(key)
		}
	}
	h.queue.CancelDelays(slices.DeleteFunc(h.queue.Delayed(), func(key K) bool { return !match(key) })...)
}
