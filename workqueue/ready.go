package workqueue

import "time"

// Ready is a run of a key that has been asked for: what an [Order] sees of it, and what becomes an [Item] when it is
// handed out.
type Ready[K comparable] struct {
	// Key is the key to run. An Order must not change it.
	Key K
	// Priority is the highest of those the run was asked for with.
	Priority int
	// Since is when the key became ready, as the time since the queue was made.
	Since time.Duration
	// Slot belongs to the Order the run is in, to find it again when its priority rises.
	Slot int

	id uint32
	// causes are the reasons for the run, at most Queue.maxCauses; dropped counts those that came after.
	causes  []Cause
	dropped int
}

// Ready records are reused: while the run is to come its entry owns the record, while it goes on the worker that
// reads Item.Causes does, and Done gives it back.

// keepSpare is how many unused records a queue keeps.
const keepSpare = 1024

// runLocked returns the record of the key's next run, a new one if there is none.
func (q *Queue[K]) runLocked(id uint32, e *entry[K]) *Ready[K] {
	if e.run != nil {
		return e.run
	}
	if n := len(q.spare); n > 0 {
		e.run, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		e.run = new(Ready[K])
	}
	e.run.id, e.run.Key = id, e.key
	return e.run
}

// recycleLocked takes back the record of a run that is over or will not be.
func (q *Queue[K]) recycleLocked(run *Ready[K]) {
	if run == nil || len(q.spare) == keepSpare {
		return
	}
	clear(run.causes)
	*run = Ready[K]{causes: run.causes[:0]}
	q.spare = append(q.spare, run)
}

// noteLocked records why the key's next run is wanted. The oldest causes are kept: they say what began it.
func (q *Queue[K]) noteLocked(run *Ready[K], c *Cause) {
	if len(run.causes) < q.maxCauses {
		run.causes = append(run.causes, *c)
	} else {
		run.dropped++
	}
}
