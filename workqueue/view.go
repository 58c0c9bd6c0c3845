package workqueue

import (
	"slices"
	"time"
)

// View is a snapshot of the contents of a queue, for people to look at.
type View[K comparable] struct {
	// Ready holds the ready keys. If the queue has no [Order], the keys of negative priority come last, and each lane
	// is in queue order.
	Ready []KeyView[K]
	// Processing holds the keys that were handed out and are not done, in no particular order.
	Processing []KeyView[K]
	// Delayed holds the pending delays, earliest first.
	Delayed []KeyView[K]
}

// KeyView is one key in a [View].
type KeyView[K comparable] struct {
	Key               K
	Priority, Attempt int
	// Time is how long the key has been ready or processing, if the queue measures time. For a delay it is the time
	// left.
	Time time.Duration
	// Requeue reports whether a delay is a requeue delay, for a retry or a periodic run, rather than a scheduled add.
	Requeue bool
	// Causes are the reasons for the run. The caller owns the slice.
	Causes []Cause
	// Again are the reasons for the run after this one, if the key was added while it was processed.
	Again []Cause
}

// View copies at most limit keys of each kind. It holds the queue's lock while it does, so limit should be small.
func (q *Queue[K]) View(limit int) View[K] {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, v, limit := q.now(), View[K]{}, max(limit, 0)
	for id := range q.ready.all() {
		if len(v.Ready) >= limit {
			break
		}
		e := q.entries.at(id)
		seen := viewOf(e, e.run)
		if q.keepsTime {
			seen.Time = now - *q.entries.dirtySince(id)
		}
		v.Ready = append(v.Ready, seen)
	}
	for _, w := range q.processing[:min(limit, len(q.processing))] {
		seen := viewOf(w.entry, w.run)
		if q.keepsTime {
			seen.Time = now - w.began
		}
		if next := w.entry.run; next != nil {
			seen.Again = slices.Clone(next.causes)
		}
		v.Processing = append(v.Processing, seen)
	}
	for _, d := range q.delayed.heap.First(limit) {
		e, kind := q.delayOf(d.Target)
		seen := viewOf(e, e.run)
		seen.Time, seen.Requeue = d.Deadline-now, kind == requeueDelay
		v.Delayed = append(v.Delayed, seen)
	}
	return v
}

func viewOf[K comparable](e handle[K], r *run[K]) KeyView[K] {
	v := KeyView[K]{Key: e.key, Attempt: int(e.attempt)}
	if r != nil {
		v.Priority, v.Causes = r.Priority, slices.Clone(r.causes)
	}
	return v
}
