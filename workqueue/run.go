package workqueue

import (
	"math"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/order"
)

// run is the record of one run of a key. Get copies it into an [Item]. The entry owns the record until the key is
// handed out. Then the worker owns it until Done, because Item.Causes is the record's slice. Records are reused.
type run[K comparable] struct {
	// Run is the part that an [Order] sees. Invariant: Key and ID are those of the entry.
	order.Run[K]
	// causes are the reasons for the run, at most Queue.maxCauses; dropped counts those that came after.
	causes  []Cause
	dropped int
}

// keepSpare is how many unused records a queue keeps.
const keepSpare = 1024

// describeLocked records an add's failure, priority, group and cause for the key's next run. A plain add has none of
// them, so the test for that is a function of its own, which is short enough to be inlined.
func (q *Queue[K]) describeLocked(e handle[K], a *add[K]) {
	if a.described || a.failed || e.run != nil {
		q.recordLocked(e, a)
	}
}

// recordLocked counts a failure, and merges an add into the record of the key's next run. A key that is added several
// times has the highest of its priorities.
func (q *Queue[K]) recordLocked(e handle[K], a *add[K]) {
	if a.failed {
		q.retries++
		e.attempt = min(e.attempt, math.MaxUint16-1) + 1
	}
	if !a.described && e.run == nil {
		return
	}
	wanted := e.wanted()
	next := q.runLocked(e)
	next.Group = a.group
	before := next.Priority
	if !wanted || a.priority > before {
		next.Priority = a.priority
	}
	if e.ready() {
		q.ready.touch(next, before)
	}
	if a.caused && len(next.causes) < q.maxCauses { // The oldest are kept: they show how it began.
		next.causes = append(next.causes, a.cause)
	} else if a.caused {
		next.dropped++
	}
}

// stampLocked records that a key becomes dirty now.
func (q *Queue[K]) stampLocked(e handle[K]) {
	now := q.nowLocked()
	*q.entries.dirtySince(e.id) = now
	if q.ready.order != nil {
		q.runLocked(e).Since = now
	}
}

// beginLocked moves the record of the key's next run from the entry to the worker, and fills in the worker's item.
func (q *Queue[K]) beginLocked(e handle[K], item *Item[K]) work[K] {
	w := work[K]{entry: e, run: e.run}
	if q.keepsTime {
		w.began = q.nowLocked()
		item.Queued = w.began - *q.entries.dirtySince(e.id)
	}
	item.Key, item.id, item.Attempt = e.key, e.id, int(e.attempt)
	if w.run != nil {
		item.Priority, item.Causes, item.DroppedCauses = w.run.Priority, w.run.causes, w.run.dropped
	}
	e.run = nil
	if q.group != nil && e.delays[scheduledAdd] != none {
		q.runLocked(e).Group = w.run.Group // When the delay expires, the lock is held, so group cannot be called.
	}
	return w
}

// endLocked frees the run's slot of the concurrency limits and takes back its record. It returns how long the run took,
// or notMeasured if the queue has no metrics.
func (q *Queue[K]) endLocked(w work[K]) (worked time.Duration) {
	if q.ready.limits != nil {
		q.ready.limits.Done(&w.run.Run)
	}
	q.recycleLocked(w.run)
	if q.metrics == nil {
		return notMeasured
	}
	return q.nowLocked() - w.began
}

// runLocked returns the record of the key's next run, and makes one if there is none.
func (q *Queue[K]) runLocked(e handle[K]) *run[K] {
	if e.run != nil {
		return e.run
	}
	if n := len(q.spare); n > 0 {
		e.run, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		e.run = new(run[K])
	}
	e.run.ID, e.run.Key = e.id, e.key
	return e.run
}

// recycleLocked takes back the record of a run that is done or was cancelled.
func (q *Queue[K]) recycleLocked(r *run[K]) {
	if r == nil || len(q.spare) == keepSpare {
		return
	}
	clear(r.causes)
	*r = run[K]{causes: r.causes[:0]}
	q.spare = append(q.spare, r)
}

// reclaimLocked takes back what an entry no longer needs: the record of the next run if no run is wanted, and the entry
// itself if it is idle.
func (q *Queue[K]) reclaimLocked(e handle[K]) {
	if e.wanted() {
		return
	}
	q.recycleLocked(e.run)
	e.run = nil
	if !e.processing() {
		q.entries.retire(e)
	}
}
