package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
	"github.com/flyball-dev/flyball/reconcile/internal/deadline"
	"github.com/flyball-dev/flyball/reconcile/internal/debounce"
)

// entry is everything that the controller knows about one key. A key has one while a worker has it, and while something
// is known about it.
//
// Invariant: while a worker has the key, only that worker changes the entry, and does so under the controller's lock.
// So the worker may read the entry without the lock. The exceptions are forgotten and debounce, which others change
// too.
type entry[K comparable] struct {
	key K

	// place is the index of the entry in table.running; none if no worker has the key.
	place int
	// run is the reconcile that is running; zero if no worker has the key.
	run deadline.Run
	// forgotten reports whether the key was forgotten during its run. If so, endRun forgets it when the run ends.
	forgotten bool

	// failing is when the key first failed since its last success; zero if the key is not being retried.
	failing time.Time
	// failure describes the last reconcile if it failed; otherwise it is nil. A key that is given up keeps its failure.
	failure *Failing
	// permission is the permission that the key lacks, or empty. Invariant: checks.forbidden has the key under this
	// permission and no other.
	permission string
	// contradiction is not nil while the server contradicts what the key's reconciles read from a cache.
	contradiction *contradiction.State
	// debounce is nil unless Options.MinInterval or Debounce is set.
	debounce *debounce.State
}

// none is the place of an entry that is not in table.running.
const none = -1

// idle reports whether the entry may be dropped without effect.
func (e *entry[K]) idle(l *debounce.Limits, now time.Time) bool {
	return e.place == none && e.healthy() && (e.debounce == nil || e.debounce.Idle(l, now))
}

// healthy reports whether the last reconcile of the key left no trouble behind.
func (e *entry[K]) healthy() bool {
	return e.failing.IsZero() && e.failure == nil && e.permission == "" && e.contradiction == nil
}

// table holds the entries.
//
// Concurrency: the controller's lock guards it.
type table[K comparable] struct {
	// entries has the keys about which something is known, or was when their last run began. Most reconciles leave
	// nothing behind, so they do not change the map.
	entries map[K]*entry[K]
	// running has the entries of the keys that workers have, in no order; some of them are in entries, too. Invariant:
	// running[i].place == i.
	running []*entry[K]
	// peak is the largest length that running ever had.
	peak int
	// failures is the number of entries that have a failure.
	failures int
	limits   debounce.Limits
	// sweepAt is the number of entries at which sweep is called.
	sweepAt int
	// spare has unused entries for keys that workers take.
	spare []*entry[K]
}

// minSweep is the smallest number of entries at which sweep is called.
const minSweep = 1024

func newTable[K comparable](l debounce.Limits) table[K] {
	return table[K]{entries: map[K]*entry[K]{}, limits: l, sweepAt: minSweep}
}

// find returns the key's entry, or nil.
func (t *table[K]) find(key K) *entry[K] {
	if i := slices.IndexFunc(t.running, func(e *entry[K]) bool { return e.key == key }); i >= 0 {
		return t.running[i]
	}
	return t.entries[key]
}

// obtain returns the key's entry, and makes one if there is none.
func (t *table[K]) obtain(key K) *entry[K] {
	e := t.find(key)
	if e == nil {
		e = t.newEntry(key)
		t.keep(e)
	}
	return e
}

// begin records that a worker has taken the key.
func (t *table[K]) begin(key K, now time.Time) *entry[K] {
	e := t.entries[key]
	if e == nil {
		e = t.newEntry(key)
	}
	e.run, e.place = deadline.Run{Began: now}, len(t.running)
	t.running = append(t.running, e)
	t.peak = max(t.peak, len(t.running))
	return e
}

// end records that the worker is done with the key. The entry must not be used afterwards. It is kept if it has a
// debounce, because that becomes idle only after some time.
func (t *table[K]) end(e *entry[K]) {
	last := len(t.running) - 1
	t.running[e.place] = t.running[last]
	t.running[e.place].place = e.place
	t.running[last] = nil
	t.running = t.running[:last]
	e.place, e.run, e.forgotten = none, deadline.Run{}, false
	if e.debounce != nil || !e.healthy() {
		t.keep(e)
		return
	}
	delete(t.entries, e.key)
	*e = entry[K]{} // so that a spare entry keeps nothing alive that the key refers to
	if len(t.spare) < t.peak {
		t.spare = append(t.spare, e)
	}
}

// newEntry returns an entry that is not in the table.
func (t *table[K]) newEntry(key K) *entry[K] {
	var e *entry[K]
	if last := len(t.spare) - 1; last >= 0 {
		e, t.spare = t.spare[last], t.spare[:last]
	} else {
		e = new(entry[K])
	}
	e.key, e.place = key, none
	if t.limits.Any() {
		e.debounce = &debounce.State{}
	}
	return e
}

// keep puts an entry into entries.
func (t *table[K]) keep(e *entry[K]) {
	if len(t.entries) >= t.sweepAt {
		t.sweep()
	}
	t.entries[e.key] = e
}

// sweep drops the entries that are idle. Because sweepAt is at least twice the number of entries that are left, the
// amortised cost of an insertion is constant.
func (t *table[K]) sweep() {
	now := time.Now()
	maps.DeleteFunc(t.entries, func(_ K, e *entry[K]) bool { return e.idle(&t.limits, now) })
	t.sweepAt = max(minSweep, 2*len(t.entries))
}

// fail records the failure of the last run; failure is nil if the run succeeded. The number of failures is bounded,
// because a controller may give up keys for years.
func (t *table[K]) fail(e *entry[K], failure *Failing) {
	switch {
	case failure == nil && e.failure != nil:
		t.failures--
	case failure != nil && e.failure == nil:
		if t.failures >= mostFailures {
			return
		}
		t.failures++
	case failure != nil:
		failure.Attempts += e.failure.Attempts
	}
	e.failure = failure
}

// began returns the keys that workers have, and when their reconciles began.
func (t *table[K]) began() map[K]time.Time {
	times := make(map[K]time.Time, len(t.running))
	for _, e := range t.running {
		times[e.key] = e.run.Began
	}
	return times
}
