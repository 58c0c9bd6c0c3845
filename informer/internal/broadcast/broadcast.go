// Package broadcast wakes all goroutines that wait for something to change.
package broadcast

import "sync"

// Broadcast wakes all waiting goroutines. The zero value works.
//
// Concurrency: all methods may be called at any time. They take no other lock.
type Broadcast struct {
	mu sync.Mutex
	// next is nil unless a goroutine waits. Announce closes it; nothing is sent.
	next chan struct{}
}

// Wait returns a channel that the next Announce closes. Call it before you check the condition: an announcement in
// between is then not missed.
func (b *Broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Announce wakes all waiting goroutines.
func (b *Broadcast) Announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
