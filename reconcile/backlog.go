package reconcile

import (
	"sync"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// leastBacklog is how many keys a [backlog] may hold whatever there was at its start.
const leastBacklog = 10_000

// backlog stands before the queue while nobody works, and remembers what is to be done once somebody does: each key once, with
// its latest cause. The keys of what changed come before those of what was there at the start, and of these the last change
// first: a process that worked until now has seen to the others, most likely.
//
// A process may wait for months, and the keys of what came and went in that time would add up. Of those a controller that
// starts without a backlog hears nothing, so they may be forgotten; but a key does not tell. So a backlog that has
// become more than twice what there was at its start is outgrown: its owner makes a new one.
type backlog[K comparable] struct {
	// outgrown is called once, without a lock, when the backlog is.
	outgrown func()

	mu sync.Mutex
	// owed has what is held, by key; nil when it was taken over.
	owed map[K]*owed[K]
	// ends is the ring's fixed link: after it comes what is first in line, before it what is last. Invariant: the ring
	// has the elements of owed, and ends.
	ends owed[K]
	// listed is how many keys what was there at the start has made.
	listed int
	// big says that outgrown was, or is being, called; claimed that it will not be any more.
	big, claimed bool
}

// owed is what is to be done for one key.
type owed[K comparable] struct {
	key           K
	cause         workqueue.Cause
	before, after *owed[K]
	debt
}

// debt is how a key was added.
type debt struct {
	// now says that the key is to run at once, limited that it is to run after the backoff of its failures.
	now, limited bool
	// due is when it is to run at the latest whatever else it does; zero: nobody asked for that.
	due time.Time
}

func newBacklog[K comparable](outgrown func()) *backlog[K] {
	b := &backlog[K]{outgrown: outgrown, owed: map[K]*owed[K]{}}
	b.ends.before, b.ends.after = &b.ends, &b.ends
	return b
}

// add holds key back. It returns false when the backlog was taken over: the key belongs into the queue then. news says that the key was
// added by something that changed.
func (b *backlog[K]) add(key K, d debt, cause workqueue.Cause, news bool) bool {
	b.mu.Lock()
	if b.owed == nil {
		b.mu.Unlock()
		return false
	}
	o, known := b.owed[key]
	if !known {
		o = &owed[K]{key: key}
		b.owed[key] = o
		b.insertLocked(o, b.ends.before)
		if !news {
			b.listed++
		}
	}
	o.cause = cause
	o.now, o.limited = o.now || d.now, o.limited || d.limited
	if !d.due.IsZero() && (o.due.IsZero() || d.due.Before(o.due)) {
		o.due = d.due
	}
	if news {
		o.unlink()
		b.insertLocked(o, &b.ends)
	}
	tell := news && !b.big && !b.claimed && len(b.owed) > max(leastBacklog, 2*b.listed)
	b.big = b.big || tell
	b.mu.Unlock()
	if tell {
		b.outgrown()
	}
	return true
}

// insertLocked puts o into the ring, after place.
func (b *backlog[K]) insertLocked(o, place *owed[K]) {
	o.before, o.after = place, place.after
	place.after.before = o
	place.after = o
}

func (o *owed[K]) unlink() { o.before.after, o.after.before = o.after, o.before }

// claim says that the backlog will be poured into a queue. It returns false when it is outgrown: then it may not.
func (b *backlog[K]) claim() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claimed = !b.big
	return b.claimed
}

// size is how many keys are held.
func (b *backlog[K]) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.owed)
}

// pour hands everything to the queue, as it would have been added at this moment. From its beginning on nothing is held back.
func (b *backlog[K]) pour(q *workqueue.Queue[K]) {
	b.mu.Lock()
	first := b.ends.after
	b.owed = nil
	b.mu.Unlock()
	for o := first; o != &b.ends; o = o.after {
		if o.due.IsZero() || o.now || o.limited {
			q.AddWith(o.key, workqueue.AddOptions{RateLimited: o.limited && !o.now, Cause: o.cause})
		}
		if !o.due.IsZero() {
			q.AddWith(o.key, workqueue.AddOptions{After: time.Until(o.due), Cause: o.cause})
		}
	}
}
