// Package backlog holds keys back until they may go into a queue: the keys of a controller that is warmed up before it
// runs, and the keys of a cluster whose caches are not filled yet.
package backlog

import (
	"sync"
	"time"
)

// Options configures [Backlog.Add]. C is workqueue.Cause. The fields are those of workqueue.AddOptions, so one type
// converts to the other. A backlog ignores Requeue and Earliest.
type Options[C any] struct {
	After                          time.Duration
	RateLimited, Requeue, Earliest bool
	Priority                       *int
	Cause                          C
}

// Least is the number of keys that a [Backlog] may hold even if it had fewer initial keys.
const Least = 10_000

// Backlog stands before a queue. It has each key once, with its latest cause. Keys of changed objects come before keys
// of the initial objects, the latest change first: the process that worked until now has most likely handled the
// others.
//
// A process may wait for months, and the keys of objects that come and go in that time add up. They may be dropped,
// because a controller that starts without a backlog never sees such objects. But a key does not show whether its
// object still exists. So a backlog that has more than twice as many keys as it had for the initial objects is
// outgrown, and its owner makes a new one.
//
// Concurrency: all methods may be called from any goroutine.
type Backlog[K comparable, C any] struct {
	// outgrown is called once, without the lock, when the backlog is outgrown; nil if it may grow without limit.
	outgrown func()

	mu sync.Mutex
	// pending has the keys that are held back; nil after the flush.
	pending map[K]*pending[K, C]
	// ends is the ring's fixed element: the first in line comes after it, the last before it. Invariant: the ring has
	// the elements of pending, and ends.
	ends pending[K, C]
	// listed is the number of keys of the initial objects.
	listed int
	// big reports whether outgrown was called, or is being called. claimed reports whether a flush has been announced:
	// then outgrown is not called any more.
	big, claimed bool
}

// pending is the merged requests for one key.
type pending[K comparable, C any] struct {
	key           K
	cause         C
	priority      *int
	before, after *pending[K, C]
	// now reports whether the key runs at once, limited whether it runs after the backoff of its failures.
	now, limited bool
	// due is when the key runs at the latest, in addition to now and limited; zero if no request had a delay.
	due time.Time
}

// New returns an empty backlog.
func New[K comparable, C any](outgrown func()) *Backlog[K, C] {
	b := &Backlog[K, C]{outgrown: outgrown, pending: map[K]*pending[K, C]{}}
	b.ends.before, b.ends.after = &b.ends, &b.ends
	return b
}

// Add holds key back. After the flush it returns false, and the caller has to add the key to the queue. changed reports
// whether the key is added because an object has changed.
func (b *Backlog[K, C]) Add(key K, o Options[C], changed bool) bool {
	b.mu.Lock()
	if b.pending == nil {
		b.mu.Unlock()
		return false
	}
	p, known := b.pending[key]
	if !known {
		p = &pending[K, C]{key: key, priority: o.Priority}
		b.pending[key] = p
		b.insertLocked(p, b.ends.before)
		if !changed {
			b.listed++
		}
	}
	p.merge(o)
	if changed {
		p.unlink()
		b.insertLocked(p, &b.ends)
	}
	report := changed && !b.big && !b.claimed && b.outgrown != nil && len(b.pending) > max(Least, 2*b.listed)
	b.big = b.big || report
	b.mu.Unlock()
	if report {
		b.outgrown()
	}
	return true
}

// merge adds another request for the key.
func (p *pending[K, C]) merge(o Options[C]) {
	p.cause = o.Cause
	if value(o.Priority) > value(p.priority) {
		p.priority = o.Priority
	}
	switch {
	case o.RateLimited:
		p.limited = true
	case o.After <= 0:
		p.now = true
	default:
		if due := time.Now().Add(o.After); p.due.IsZero() || due.Before(p.due) {
			p.due = due
		}
	}
}

func value(priority *int) int {
	if priority == nil {
		return 0
	}
	return *priority
}

// insertLocked puts p into the ring, after place.
func (b *Backlog[K, C]) insertLocked(p, place *pending[K, C]) {
	p.before, p.after = place, place.after
	place.after.before = p
	place.after = p
}

func (p *pending[K, C]) unlink() { p.before.after, p.after.before = p.after, p.before }

// Claim announces the flush. It returns false if the backlog is outgrown, and must not be flushed.
func (b *Backlog[K, C]) Claim() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claimed = !b.big
	return b.claimed
}

// Len returns the number of keys that are held back.
func (b *Backlog[K, C]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// Flush passes all keys to add, without a lock, with the delays that are left at this moment. From the start of Flush
// on, Add holds nothing back.
func (b *Backlog[K, C]) Flush(add func(key K, o Options[C])) {
	b.mu.Lock()
	first := b.ends.after
	b.pending, b.ends.before, b.ends.after = nil, &b.ends, &b.ends
	b.mu.Unlock()
	for p := first; p != &b.ends; p = p.after {
		o := Options[C]{Cause: p.cause, Priority: p.priority}
		if p.due.IsZero() || p.now || p.limited {
			o.RateLimited = p.limited && !p.now
			add(p.key, o)
		}
		if !p.due.IsZero() {
			o.RateLimited, o.After = false, time.Until(p.due)
			add(p.key, o)
		}
	}
}
