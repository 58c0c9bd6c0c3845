package workqueue

import "time"

// Ready describes a run of a key that is to come: what an [Order] sees of it, and what becomes an [Item] when it is
// handed out.
type Ready[K comparable] struct {
	// Key is the key to run. An Order must not change it.
	Key K
	// Priority is the highest priority that the key was added with.
	Priority int
	// Since is when the key became ready, as the time since the queue was created.
	Since time.Duration
	// Slot is for the use of the Order that holds the run: it finds the run by it when Touch is called.
	Slot int

	id uint32
	// causes are the reasons for the run, at most Queue.maxCauses of them; dropped counts the rest.
	causes  []Cause
	dropped int
}

// Ready records are reused. While the run is to come, its entry owns the record; while the run goes on, the worker that
// reads Item.Causes owns it; Done gives it back to the queue.

// keepSpare is the maximum number of spare records.
const keepSpare = 1024

// runLocked returns the record of the key's next run. It makes one if there is none.
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

// recycleLocked takes back the record of a run that is over or no longer wanted.
func (q *Queue[K]) recycleLocked(run *Ready[K]) {
	if run == nil || len(q.spare) == keepSpare {
		return
	}
	clear(run.causes)
	*run = Ready[K]{causes: run.causes[:0]}
	q.spare = append(q.spare, run)
}

// noteLocked records a cause of the key's next run. The oldest causes are kept, because they tell what started it.
func (q *Queue[K]) noteLocked(run *Ready[K], c *Cause) {
	if len(run.causes) < q.maxCauses {
		run.causes = append(run.causes, *c)
	} else {
		run.dropped++
	}
}
