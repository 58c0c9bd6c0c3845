package workqueue

import "time"

// Cause is one reason why a key was added: an event of a source, about an object, at a resource version.
// All fields are for people and traces; the queue compares none of them.
type Cause struct {
	// Source names what added the key, for example the kind that is watched.
	Source string
	// Event is what happened: Add, Update, Delete, Resync, Retry …
	Event string
	// Object is the object the event was about, usually namespace/name; it may differ from the key.
	Object string
	// ResourceVersion is the object's at the event.
	ResourceVersion string
	// Time is when the source saw the event. The queue stores it as given.
	Time time.Time
}

// causes is the bounded list of reasons for one run. Lists are reused: while a key waits its entry owns the list, while
// it is processing the reader of Item.Causes does, and Done gives it back to the queue.
type causes struct {
	list    []Cause
	dropped int
}

// noteLocked records why the key's next run is wanted. The oldest causes are kept: they say what began it.
func (q *Queue[K]) noteLocked(e *entry[K], c *Cause) {
	if c == nil || q.maxCauses < 0 {
		return
	}
	if e.causes == nil {
		e.causes = q.newCausesLocked()
	}
	if len(e.causes.list) < q.maxCauses {
		e.causes.list = append(e.causes.list, *c)
	} else {
		e.causes.dropped++
	}
}

// spareCauses is how many unused lists a queue keeps.
const spareCauses = 64

func (q *Queue[K]) newCausesLocked() *causes {
	n := len(q.spareCauses)
	if n == 0 {
		return new(causes)
	}
	c := q.spareCauses[n-1]
	q.spareCauses[n-1] = nil
	q.spareCauses = q.spareCauses[:n-1]
	return c
}

func (q *Queue[K]) freeCausesLocked(c *causes) {
	if c == nil || len(q.spareCauses) == spareCauses {
		return
	}
	clear(c.list)
	c.list, c.dropped = c.list[:0], 0
	q.spareCauses = append(q.spareCauses, c)
}
