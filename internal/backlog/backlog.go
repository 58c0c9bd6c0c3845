// Package backlog holds keys back until they may be worked on: those of a controller that is warmed up before it runs,
// and those of a cluster whose caches are not filled yet.
package backlog

import (
	"sync"
	"time"
)

// Options say how a key is added. C is workqueue.Cause. The fields are those of workqueue.AddOptions, so one converts
// to the other. A backlog ignores Requeue and Earliest.
type Options[C any] struct {
	After                          time.Duration
	RateLimited, Requeue, Earliest bool
	Priority                       *int
	Cause                          C
}

// Least is how many keys a [Backlog] may hold however few its initial keys were.
const Least = 10_000

// Backlog stands before a queue. It remembers each key once, with its latest cause. Keys of changed objects come before
// keys of the initial objects, the latest change first: the process that worked until now has most likely handled the
// others.
//
// A process may wait for months, and the keys of objects that came and went in that time would add up. A controller
// that starts without a backlog never hears of such objects, so their keys may be forgotten. But a key does not show
// whether its object still exists. So a backlog that has more than twice as many keys as its initial objects made is
// outgrown, and its owner makes a new one.
//
// Concurrency: all methods may be called from any goroutine.
type Backlog[K comparable, C any] struct {
	// outgrown is called once, with no lock held, when the backlog is outgrown; nil if it may grow without limit.
	outgrown func()

	mu sync.Mutex
	// pending has the keys held back; nil once they were flushed.
	pending map[K]*pending[K, C]
	// ends is the ring's fixed element: the first in line comes after it, the last before it. Invariant: the ring has
	// the elements of pending, and ends.
	ends pending[K, C]
	// listed is the number of keys of the initial objects.
	listed int
	// big reports that outgrown was called, or is being called. claimed reports that it will not be called any more.
	big, claimed bool
}

// pending is the merged requests for one key.
type pending[K comparable, C any] struct {
	key           K
	cause         C
	priority      *int
	before, after *pending[K, C]
	// now: the key runs at once. limited: it runs after the backoff of its failures.
	now, limited bool
	// due is when the key runs at the latest, in addition to now and limited; zero if nobody asked for that.
	due time.Time
}

// New returns an empty backlog.
func New[K comparable, C any](outgrown func()) *Backlog[K, C] {
	b := &Backlog[K, C]{outgrown: outgrown, pending: map[K]*pending[K, C]{}}
	b.ends.before, b.ends.after = &b.ends, &b.ends
	return b
}

// Add holds key back. It returns false once the backlog was flushed: then the caller adds the key to the queue. news
// reports whether the key is added because something changed.
func (b *Backlog[K, C]) Add(key K, o Options[C], news bool) bool {
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
		if !news {
			b.listed++
		}
	}
	p.merge(o)
	if news {
		p.unlink()
		b.insertLocked(p, &b.ends)
	}
	report := news && !b.big && !b.claimed && b.outgrown != nil && len(b.pending) > max(Least, 2*b.listed)
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

// Claim announces a flush. It returns false if the backlog is outgrown: then it must not be flushed.
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

// Flush adds everything, with no lock held, as it would be added at this moment. From the start of Flush on, Add holds
// nothing back.
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
