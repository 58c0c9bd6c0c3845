// Package log is the solution of task 04a.
package log

import (
	"context"
	"sync"
)

// Log holds entries in order.
type Log[T any] struct {
	limit int

	mu      sync.Mutex
	entries []T
	// ready has capacity 1. A token means that there may be entries.
	ready chan struct{}
	// room is nil unless a Push waits for it. Take closes it.
	room chan struct{}
}

// New returns an empty log that holds up to limit entries.
func New[T any](limit int) *Log[T] {
	return &Log[T]{limit: limit, ready: make(chan struct{}, 1)}
}

// Push appends an entry, and waits while the log is full.
func (l *Log[T]) Push(ctx context.Context, entry T) error {
	for {
		room := l.tryPush(entry)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryPush appends an entry. If the log is full, it returns a channel that is closed when there is room again.
func (l *Log[T]) tryPush(entry T) (room <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) >= l.limit {
		if l.room == nil {
			l.room = make(chan struct{})
		}
		return l.room
	}
	l.entries = append(l.entries, entry)
	select {
	case l.ready <- struct{}{}:
	default: // The token is there already.
	}
	return nil
}

// Take returns all entries and empties the log. It waits while the log is empty.
func (l *Log[T]) Take(ctx context.Context) ([]T, error) {
	for {
		if all := l.tryTake(); all != nil {
			return all, nil
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Log[T]) tryTake() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.entries
	l.entries = nil
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
	return all
}

// Len returns the number of entries in the log.
func (l *Log[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}
