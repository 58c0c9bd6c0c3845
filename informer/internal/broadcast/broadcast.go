// Package broadcast wakes everybody who waits for something to change.
package broadcast

import "sync"

// Broadcast wakes everybody who waits for something to change. The zero value works.
//
// Concurrency: both methods at any time. No other lock is taken while mu is held.
type Broadcast struct {
	mu sync.Mutex
	// next is nil unless somebody waits. It is closed by announce; nothing is sent.
	next chan struct{}
}

// Wait returns a channel that the next announce closes. Call it before looking at what may change: an announcement in
// between is then not missed.
func (b *Broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Announce wakes everybody who waits.
func (b *Broadcast) Announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
