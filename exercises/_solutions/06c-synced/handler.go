// Package handler is the solution of task 06c.
package handler

import "sync"

// Handler calls a function for each object, one at a time.
type Handler struct {
	call func(object string)
	wake chan struct{} // has capacity 1

	mu    sync.Mutex
	queue []queued
	// initial counts the objects of the first list that the function was not told yet.
	initial int
	// listed says that the first list is complete.
	listed bool
	// panics counts the calls that panicked.
	panics int
}

type queued struct {
	object  string
	initial bool
}

// New returns a Handler. It calls nothing before Run.
func New(call func(object string)) *Handler {
	return &Handler{call: call, wake: make(chan struct{}, 1)}
}

// Add queues an object. Initial says that it is of the first list.
func (h *Handler) Add(object string, initial bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if initial {
		h.initial++
	}
	h.queue = append(h.queue, queued{object, initial})
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Listed says that all objects of the first list were added.
func (h *Handler) Listed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed = true
}

// HasSynced reports whether the function was told all objects of the first list, and returned.
func (h *Handler) HasSynced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listed && h.initial == 0
}

// Panics returns how many calls panicked.
func (h *Handler) Panics() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.panics
}

// Run calls the function for what is queued, until stop is closed.
func (h *Handler) Run(stop <-chan struct{}) {
	for {
		for next, ok := h.next(); ok; next, ok = h.next() {
			h.deliver(next)
		}
		select {
		case <-h.wake:
		case <-stop:
			return
		}
	}
}

func (h *Handler) next() (next queued, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return next, false
	}
	next, h.queue = h.queue[0], h.queue[1:]
	return next, true
}

// deliver makes one call. A panic in it is contained: the next object is more important than this one.
func (h *Handler) deliver(o queued) {
	defer func() {
		if recover() != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.panics++
		}
	}()
	defer h.told(o) // Also after a panic, and never before the call has ended.
	h.call(o.object)
}

// told notes that the function was told an object.
func (h *Handler) told(o queued) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.initial {
		h.initial--
	}
}
