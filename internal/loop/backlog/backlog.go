// Package backlog holds keys back while nobody may work on them: those of a controller that is warmed up before it
// runs, and those of a cluster whose caches are not filled yet.
package backlog

import (
	"sync"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Least is how many keys a [Backlog] may hold whatever there was at its start.
const Least = 10_000

// Backlog stands before a queue and remembers what is to be done once somebody works: each key once, with its latest
// cause. The keys of what changed come before those of what was there at the start, and of these the last change
// first: a process that worked until now has seen to the others, most likely.
//
// A process may wait for months, and the keys of what came and went in that time would add up. Of those a controller
// that starts without a backlog hears nothing, so they may be forgotten; but a key does not tell. So a backlog that
// has become more than twice what there was at its start is outgrown: its owner makes a new one.
//
// Concurrency: all methods may be called from any goroutine.
type Backlog[K comparable] struct {
	// outgrown is called once, without a lock, when the backlog is; nil if it may grow for ever.
	outgrown func()

	mu sync.Mutex
	// pending has what is held, by key; nil once it was flushed.
	pending map[K]*pending[K]
	// ends is the ring's fixed link: after it comes what is first in line, before it what is last. Invariant: the
	// ring has the elements of pending, and ends.
	ends pending[K]
	// listed is how many keys what was there at the start has made.
	listed int
	// big: outgrown was called, or is being called. claimed: it will not be called any more.
	big, claimed bool
}

// pending is what is to be done for one key.
type pending[K comparable] struct {
	key           K
	cause         workqueue.Cause
	priority      *int
	before, after *pending[K]
	// now: the key is to run at once; limited: after the backoff of its failures.
	now, limited bool
	// due is when it is to run at the latest whatever else it does; zero: nobody asked for that.
	due time.Time
}

// New returns an empty backlog.
func New[K comparable](outgrown func()) *Backlog[K] {
	b := &Backlog[K]{outgrown: outgrown, pending: map[K]*pending[K]{}}
	b.ends.before, b.ends.after = &b.ends, &b.ends
	return b
}

// Add holds key back. It returns false once the backlog was flushed: the key belongs into the queue then. news means
// that the key is added because of something that changed.
func (b *Backlog[K]) Add(key K, o workqueue.AddOptions, news bool) bool {
	b.mu.Lock()
	if b.pending == nil {
		b.mu.Unlock()
		return false
	}
	p, known := b.pending[key]
	if !known {
		p = &pending[K]{key: key, priority: o.Priority}
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
func (p *pending[K]) merge(o workqueue.AddOptions) {
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
func (b *Backlog[K]) insertLocked(p, place *pending[K]) {
	p.before, p.after = place, place.after
	place.after.before = p
	place.after = p
}

func (p *pending[K]) unlink() { p.before.after, p.after.before = p.after, p.before }

// Claim announces that the backlog will be flushed. It returns false if the backlog is outgrown: then it must not be.
func (b *Backlog[K]) Claim() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claimed = !b.big
	return b.claimed
}

// Len returns the number of keys that are held back.
func (b *Backlog[K]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// Flush adds everything, without a lock, as it would have been added at this moment. From its beginning on nothing is
// held back.
func (b *Backlog[K]) Flush(add func(key K, o workqueue.AddOptions)) {
	b.mu.Lock()
	first := b.ends.after
	b.pending, b.ends.before, b.ends.after = nil, &b.ends, &b.ends
	b.mu.Unlock()
	for p := first; p != &b.ends; p = p.after {
		o := workqueue.AddOptions{Cause: p.cause, Priority: p.priority}
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
