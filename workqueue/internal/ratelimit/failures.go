package ratelimit

import "sync"

// failures counts failures per key. A key without failures takes no memory.
type failures[K comparable] struct {
	mu     sync.Mutex
	counts map[K]int
}

// count adds one failure and returns how many there were before it.
func (f *failures[K]) count(key K) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = make(map[K]int)
	}
	before := f.counts[key]
	f.counts[key] = before + 1
	return before
}

// Forget drops the key's count.
func (f *failures[K]) Forget(key K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.counts, key)
}

// NumRequeues returns the key's count.
func (f *failures[K]) NumRequeues(key K) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[key]
}
