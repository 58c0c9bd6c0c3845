// Package handler is task 06c: a handler that never gets ready.
//
// A controller must not begin before its handler has heard of every object that was there at the start. So Handler
// counts: each object of the first list that is queued adds one, each that the handler was told takes one away. When
// the list is through and nothing is left, it has synced.
//
// A controller waits for that, and waits for ever. Its log says that the function panicked on one object, a long time
// ago, and that the panic was contained. client-go v0.37.2 has this bug in tools/cache/shared_informer.go, and
// kubernetes/kubernetes#129024 reports it.
//
// Run the tests, read the code, and find out which step a panic skips. The mend is one line. Say when a call counts as
// done, before you change anything.
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
	h.call(o.object)
	h.told(o)
}

// told notes that the function was told an object.
func (h *Handler) told(o queued) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.initial {
		h.initial--
	}
}
