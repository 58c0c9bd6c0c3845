package informer

import "sync"

// broadcast wakes everybody who waits for something to change. The zero value works.
//
// Concurrency: both methods at any time. No other lock is taken while mu is held.
type broadcast struct {
	mu sync.Mutex
	// next is nil unless somebody waits. It is closed by announce; nothing is sent.
	next chan struct{}
}

// wait returns a channel that the next announce closes. Call it before looking at what may change: an announcement in
// between is then not missed.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
