package workqueue

import "github.com/flyball-dev/flyball/workqueue/internal/order"

// run is a run of a key that was asked for: what becomes an [Item] when the key is handed out. Runs are reused: the
// entry owns the run until the key is handed out, then the worker that reads Item.Causes, until Done.
type run[K comparable] struct {
	// Run is what an [Order] sees of it. Invariant: Key and ID are those of the entry.
	order.Run[K]
	// causes are the reasons for the run, at most Queue.maxCauses; dropped counts those that came after.
	causes  []Cause
	dropped int
}

// keepSpare is how many unused records a queue keeps.
const keepSpare = 1024

// runLocked returns the record of the key's next run, a new one if there is none.
func (q *Queue[K]) runLocked(id uint32, e *entry[K]) *run[K] {
	if e.run != nil {
		return e.run
	}
	if n := len(q.spare); n > 0 {
		e.run, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		e.run = new(run[K])
	}
	e.run.ID, e.run.Key = id, e.key
	return e.run
}

// recycleLocked takes back the record of a run that is over or will not be.
func (q *Queue[K]) recycleLocked(over *run[K]) {
	if over == nil || len(q.spare) == keepSpare {
		return
	}
	clear(over.causes)
	*over = run[K]{causes: over.causes[:0]}
	q.spare = append(q.spare, over)
}
