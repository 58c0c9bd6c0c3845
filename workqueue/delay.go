package workqueue

import (
	"math"
	"sync"
	"time"
)

// delayKind tells the two sources of a delay apart. A key has at most one pending delay of each kind.
type delayKind uint32

const (
	// explicitDelay was set by AddAfter. It stays until it expires, or until ShutDown, Drain or DropDelays drops it.
	explicitDelay delayKind = iota
	// ownDelay was set by the loop that works on the key: its retry or periodic run. Any run that comes earlier cancels
	// it.
	ownDelay
	delayKinds
)

// delays holds the pending delays of a queue and the one timer that expires them.
type delays[K comparable] struct {
	// heap is a heap with four children per node, ordered by (deadline, sequence).
	//
	// Invariant: the entry of heap[i] has i in its delays, under heap[i]'s kind.
	heap []delay
	// sequence is the sequence number of the newest delay.
	sequence uint32

	// timer runs Queue.endDelays in its own goroutine, at the first deadline or earlier. It is nil until the first
	// delay.
	timer *time.Timer
	// alarm is the deadline the timer is set to; noAlarm if it is not set.
	//
	// Invariant: alarm ≤ heap[0].deadline. If the timer fires too early, endDelays sets it again.
	alarm time.Duration
	// running counts the armed timer and the goroutines of timers that have fired, so that ShutDown can wait for them.
	running sync.WaitGroup
}

const noAlarm = time.Duration(math.MaxInt64)

// delayLocked sets a delay. If a key has several explicit delays, the earliest wins, because each of them asks for a
// run no later than its deadline. Of the loop's own delays the last one wins, unless request.earliest is set, because
// it is what the loop wants now. A dirty key needs no delay of the loop's own.
func (q *Queue[K]) delayLocked(id uint32, e *entry[K], r request) {
	deadline := q.now()
	if r.after < noAlarm-1-deadline {
		deadline += r.after
	} else {
		deadline = noAlarm - 1
	}
	place := int(e.delays[r.kind])
	switch {
	case r.kind == ownDelay && e.dirty:
		return
	case place == none:
		place = len(q.delayed.heap)
		q.delayed.append(delay{target: id<<1 | uint32(r.kind)})
	case (r.kind == explicitDelay || r.earliest) && q.delayed.heap[place].deadline <= deadline:
		return
	}
	q.delayed.sequence++
	q.delayed.heap[place].deadline, q.delayed.heap[place].sequence = deadline, q.delayed.sequence
	q.delayed.fix(place, &q.entries)
	q.setAlarmLocked()
}

// setAlarmLocked resets the timer if the first deadline is earlier than the one the timer is set to.
func (q *Queue[K]) setAlarmLocked() {
	d := &q.delayed
	if len(d.heap) == 0 || d.heap[0].deadline >= d.alarm {
		return
	}
	d.alarm = d.heap[0].deadline
	wait := d.alarm - q.now()
	if d.timer == nil {
		d.running.Add(1)
		d.timer = time.AfterFunc(wait, q.endDelays)
	} else if !d.timer.Reset(wait) {
		// The timer had already fired, and that goroutine has its own count in running.
		d.running.Add(1)
	}
}

// endDelays is the timer's function. It marks the keys whose deadline has passed and sets the timer again.
func (q *Queue[K]) endDelays() {
	defer q.delayed.running.Done()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown.begun {
		return
	}
	q.delayed.alarm = noAlarm
	q.endDueLocked()
	q.setAlarmLocked()
}

// endDueLocked marks the keys whose deadline has passed, in order of (deadline, sequence).
func (q *Queue[K]) endDueLocked() {
	for now := q.now(); len(q.delayed.heap) > 0 && q.delayed.heap[0].deadline <= now; {
		id := q.delayed.remove(0, &q.entries)
		q.markLocked(id, q.entries.at(id))
	}
}

// DropDelays drops all pending delays of the keys that match, explicit ones included. It calls match under the queue's
// lock.
func (q *Queue[K]) DropDelays(match func(key K) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var dropped []delay
	for _, d := range q.delayed.heap {
		if id, _ := d.owner(); match(q.entries.at(id).key) {
			dropped = append(dropped, d)
		}
	}
	for _, d := range dropped {
		id, kind := d.owner()
		e := q.entries.at(id)
		q.delayed.remove(int(e.delays[kind]), &q.entries)
		q.unwantedLocked(id, e)
	}
}

// DropRequeue drops the pending retry or periodic run of a key: the delay that AddRateLimited or RequeueAfter set.
func (q *Queue[K]) DropRequeue(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id, e := q.entries.search(key, q.entries.hash(key))
	if e == nil || e.delays[ownDelay] == none {
		return
	}
	q.delayed.remove(int(e.delays[ownDelay]), &q.entries)
	q.unwantedLocked(id, e)
}

// unwantedLocked recycles the record of the key's next run if no run is wanted, and retires an idle entry.
func (q *Queue[K]) unwantedLocked(id uint32, e *entry[K]) {
	if !e.wanted() {
		q.recycleLocked(e.run)
		e.run = nil
	}
	if e.idle() {
		q.entries.retire(id, e)
	}
}

// stopDelaysLocked drops all delays and stops the timer.
func (q *Queue[K]) stopDelaysLocked() {
	for i := range q.delayed.heap {
		id, kind := q.delayed.heap[i].owner()
		e := q.entries.at(id)
		e.delays[kind] = none
		q.unwantedLocked(id, e)
	}
	q.delayed.heap = nil
	if q.delayed.timer != nil && q.delayed.timer.Stop() {
		q.delayed.running.Done()
	}
}
