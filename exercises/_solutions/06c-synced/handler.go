// Package handler is the solution of task 06c.
package handler

import "sync"

// Handler calls a function for each object, one at a time.
type Handler struct {
	call func(object string)
	wake chan struct{} // has capacity 1

	mu    sync.Mutex
	queue []queued
	// initial counts the objects of the first list that the function has not been called with.
	initial int
	// listed means that the first list is complete.
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

// Add queues an object. initial means that it is in the first list.
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

// Listed is called when all objects of the first list were added.
func (h *Handler) Listed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed = true
}

// HasSynced reports whether the function has been called with all objects of the first list, and the calls have ended.
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

// Run calls the function for each queued object until stop is closed.
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

// deliver makes one call. It recovers a panic, so that the other objects are still delivered.
func (h *Handler) deliver(o queued) {
	defer func() {
		if recover() != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.panics++
		}
	}()
	defer h.told(o) // after the call, even if it panics
	h.call(o.object)
}

// told records that the function was called with an object.
func (h *Handler) told(o queued) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.initial {
		h.initial--
	}
}
