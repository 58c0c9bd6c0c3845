package reconcile

import (
	"maps"
	"time"

	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
	"github.com/flyball-dev/flyball/reconcile/internal/deadline"
	"github.com/flyball-dev/flyball/reconcile/internal/debounce"
)

// entry is everything the controller knows about one key. A key has one at most, and none if there is nothing to know.
//
// Invariant: while a worker has the key, only that worker changes the entry, and it does so under the controller's
// lock. So the worker may read without the lock. The exceptions are forgotten and debounce.
type entry[K comparable] struct {
	key K

	// place is the index of the entry in table.running; none if no worker has the key.
	place int
	// run is the reconcile that goes on; zero if no worker has the key.
	run deadline.Run
	// forgotten: the key was forgotten while a worker has it, so what the run leaves behind is to be forgotten.
	forgotten bool

	// failing is when the key failed first since it last succeeded; zero if it is not being retried.
	failing time.Time
	// failure is how the last reconcile failed; nil if it did not. Of keys that were given up it stays.
	failure *Failing
	// permission is what the key lacks, or empty. Invariant: rooms.forbidden has the key under it and nowhere else.
	permission string
	// contradiction is set if the server contradicts what the key's reconciles read in a cache.
	contradiction *contradiction.State
	// debounce is nil unless Options limit how often a key may run.
	debounce *debounce.State
}

// none is a place in no list.
const none = -1

// idle reports whether nothing would change if the entry were dropped.
func (e *entry[K]) idle(l *debounce.Limits, now time.Time) bool {
	return e.place == none && e.well() && (e.debounce == nil || e.debounce.Idle(l, now))
}

// well reports whether nothing is wrong with the key.
func (e *entry[K]) well() bool {
	return e.failing.IsZero() && e.failure == nil && e.permission == "" && e.contradiction == nil
}

// table holds the entries.
//
// Concurrency: the controller's lock guards it.
type table[K comparable] struct {
	entries map[K]*entry[K]
	// running are the entries of the keys that workers have, in no order. Invariant: running[i].place == i.
	running []*entry[K]
	// peak is the most there ever were in running.
	peak int
	// failures is how many entries have a failure.
	failures int
	limits   debounce.Limits
	// sweepAt is the size at which entries are dropped that have become idle by the passing of time.
	sweepAt int
	// spare is an entry that no key uses: most runs need one for a moment.
	spare *entry[K]
}

// minSweep is the least size of a table that is swept.
const minSweep = 1024

func newTable[K comparable](l debounce.Limits) table[K] {
	return table[K]{entries: map[K]*entry[K]{}, limits: l, sweepAt: minSweep}
}

// obtain returns the key's entry, a new one if there is none.
func (t *table[K]) obtain(key K) *entry[K] {
	e := t.entries[key]
	if e != nil {
		return e
	}
	if len(t.entries) >= t.sweepAt {
		t.sweep()
	}
	if e, t.spare = t.spare, nil; e == nil {
		e = new(entry[K])
	}
	*e = entry[K]{key: key, place: none}
	if t.limits.Any() {
		e.debounce = &debounce.State{}
	}
	t.entries[key] = e
	return e
}

// begin notes that a worker has the key.
func (t *table[K]) begin(key K, now time.Time) *entry[K] {
	e := t.obtain(key)
	e.run, e.place = deadline.Run{Began: now}, len(t.running)
	t.running = append(t.running, e)
	t.peak = max(t.peak, len(t.running))
	return e
}

// end notes that no worker has the key any more. The entry must not be used after that.
func (t *table[K]) end(e *entry[K]) {
	last := len(t.running) - 1
	t.running[e.place] = t.running[last]
	t.running[e.place].place = e.place
	t.running[last] = nil
	t.running = t.running[:last]
	e.place, e.run, e.forgotten = none, deadline.Run{}, false
	t.drop(e)
}

// drop drops an entry if it is idle.
func (t *table[K]) drop(e *entry[K]) {
	if e.debounce == nil && e.idle(&t.limits, time.Time{}) {
		delete(t.entries, e.key)
		*e = entry[K]{} // which must not keep alive what the key refers to
		t.spare = e
	}
}

// sweep drops the entries that are idle. It costs a constant per key added.
func (t *table[K]) sweep() {
	now := time.Now()
	maps.DeleteFunc(t.entries, func(_ K, e *entry[K]) bool { return e.idle(&t.limits, now) })
	t.sweepAt = max(minSweep, 2*len(t.entries))
}

// fail notes how the last run of the key ended; nil: without an error. There is a bound to what is remembered, for
// controllers that live long and give up much.
func (t *table[K]) fail(e *entry[K], how *Failing) {
	switch {
	case how == nil && e.failure != nil:
		t.failures--
	case how != nil && e.failure == nil:
		if t.failures >= mostFailures {
			return
		}
		t.failures++
	case how != nil:
		how.Attempts += e.failure.Attempts
	}
	e.failure = how
}

// began returns, for each key that a worker has, when its reconcile began.
func (t *table[K]) began() map[K]time.Time {
	times := make(map[K]time.Time, len(t.running))
	for _, e := range t.running {
		times[e.key] = e.run.Began
	}
	return times
}
