package workqueue

import (
	"math"
	"sync"
	"time"
)

// delayKind tells who asked for a delay. A key has at most one pending delay of each kind.
type delayKind uint32

const (
	// explicitDelay was asked for by AddAfter. Nothing but its end, or ShutDown, ends it.
	explicitDelay delayKind = iota
	// ownDelay was set by the loop that works on the key: its retry or periodic run. Any run that comes earlier ends it.
	ownDelay
	delayKinds
)

// delays are the pending delays of a queue and the one timer that ends them.
type delays[K comparable] struct {
	// heap is a heap of four children per node, ordered by (deadline, sequence).
	//
	// Invariant: the entry of heap[i] has i in its delays, under heap[i]'s kind.
	heap []delay
	// sequence is that of the newest delay.
	sequence uint32

	// timer runs Queue.endDelays in a goroutine of its own, at the first deadline or earlier. Nil until there is a delay.
	timer *time.Timer
	// alarm is the deadline the timer is set to; noAlarm if it is not set.
	//
	// Invariant: alarm ≤ heap[0].deadline. An alarm that comes too early sets the next one.
	alarm time.Duration
	// running counts the alarm that is set and the goroutines of those that went off, so that ShutDown can wait for them.
	running sync.WaitGroup
}

const noAlarm = time.Duration(math.MaxInt64)

// delayLocked sets a delay. Of explicit delays the earliest counts: all of them asked for a run no later than theirs.
// Of the loop's own the last counts, unless it says otherwise: it is what the loop wants now. If the key is dirty, the loop needs none.
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

// setAlarmLocked sets the timer if the first deadline is earlier than its alarm.
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
		// The alarm before has gone off, and its goroutine accounts for itself.
		d.running.Add(1)
	}
}

// endDelays is what the timer runs: it marks the keys whose deadline has come and sets the next alarm.
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

// endDueLocked marks the keys whose deadline has come, in order of (deadline, sequence).
func (q *Queue[K]) endDueLocked() {
	for now := q.now(); len(q.delayed.heap) > 0 && q.delayed.heap[0].deadline <= now; {
		id := q.delayed.remove(0, &q.entries)
		q.markLocked(id, q.entries.at(id))
	}
}

// DropDelays drops the pending delays of the keys that match, the loop's own and others. match is called under the queue's lock.
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

// DropRequeue drops the pending retry or periodic run of a key: what AddRateLimited and RequeueAfter asked for.
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

// unwantedLocked lets go of what is known of a key's next run, if none is to come.
func (q *Queue[K]) unwantedLocked(id uint32, e *entry[K]) {
	if !e.wanted() {
		q.recycleLocked(e.run)
		e.run = nil
	}
	if e.idle() {
		q.entries.retire(id, e)
	}
}

// stopDelaysLocked drops all delays and the timer.
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
