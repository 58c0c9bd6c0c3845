// Package fanout is the solution of task 06a.
package fanout

import (
	"sync"

	"github.com/flyball-dev/flyball/exercises/kube"
)

func key(c kube.Change) string {
	if c.New != nil {
		return c.New.Key()
	}
	return c.Old.Key()
}

// Merge returns a shorter list of changes with the same result.
func Merge(changes []kube.Change) []kube.Change {
	var order []string
	whole := map[string]kube.Change{}
	for _, c := range changes {
		first, known := whole[key(c)]
		if !known {
			order = append(order, key(c))
			first = c
		}
		whole[key(c)] = kube.Change{Old: first.Old, New: c.New}
	}
	var merged []kube.Change
	for _, key := range order {
		c := whole[key]
		switch {
		case c.Old == nil && c.New == nil:
		case c.Old != nil && c.New != nil && c.Old.UID != c.New.UID:
			merged = append(merged, kube.Change{Old: c.Old}, kube.Change{New: c.New})
		default:
			merged = append(merged, c)
		}
	}
	return merged
}

// Fanout gives every change to every handler.
type Fanout struct {
	limit int

	mu       sync.Mutex
	handlers []*Handler
	running  sync.WaitGroup
}

// Handler is a function that is called for each change.
type Handler struct {
	handle func(kube.Change)

	mu      sync.Mutex
	changed *sync.Cond
	waiting []kube.Change
	stopped bool
}

// New returns a Fanout without handlers. It merges the changes that wait for a handler when there are more than limit.
func New(limit int) *Fanout { return &Fanout{limit: limit} }

// Add adds a handler.
func (f *Fanout) Add(handle func(kube.Change)) *Handler {
	h := &Handler{handle: handle}
	h.changed = sync.NewCond(&h.mu)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers = append(f.handlers, h)
	f.running.Go(h.run)
	return h
}

// Publish gives changes to all handlers.
func (f *Fanout) Publish(changes ...kube.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.handlers {
		h.add(changes, f.limit)
	}
}

// Stop ends all handlers.
func (f *Fanout) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.handlers {
		h.stop()
	}
	f.handlers = nil
	f.running.Wait()
}

func (h *Handler) add(changes []kube.Change, limit int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, changes...)
	if len(h.waiting) > limit {
		h.waiting = Merge(h.waiting)
	}
	h.changed.Signal()
}

func (h *Handler) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.changed.Signal()
}

func (h *Handler) run() {
	for {
		c, ok := h.next()
		if !ok {
			return
		}
		h.handle(c)
	}
}

// next waits for a change. It returns false when the handler is stopped.
func (h *Handler) next() (c kube.Change, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.waiting) == 0 && !h.stopped {
		h.changed.Wait()
	}
	if h.stopped {
		return c, false
	}
	c, h.waiting = h.waiting[0], h.waiting[1:]
	return c, true
}

// Waiting returns how many changes wait for the handler. A change that it is being called with does not count.
func (h *Handler) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}
