package workqueue

import (
	"math"
	"sync"
	"time"
)

// delayKind tells who asked for a delay. A key has at most one pending delay of each kind.
type delayKind int

const (
	// explicitDelay was asked for by AddAfter. Nothing but its end, or ShutDown, ends it.
	explicitDelay delayKind = iota
	// ownDelay was set by the loop that works on the key: its retry or periodic run. Any run that comes earlier ends it.
	ownDelay
	delayKinds
)

// delay is one wait of one key.
type delay[K comparable] struct {
	// deadline is when the key is to become ready, on the queue's clock.
	deadline time.Duration
	// sequence orders delays with equal deadlines: first asked for, first out.
	sequence uint64
	entry    *entry[K]
	kind     delayKind
}

func (d *delay[K]) before(other *delay[K]) bool {
	if d.deadline != other.deadline {
		return d.deadline < other.deadline
	}
	return d.sequence < other.sequence
}

// delays are the pending delays of a queue and the one timer that ends them.
type delays[K comparable] struct {
	// heap is a heap of four children per node, ordered by (deadline, sequence).
	//
	// Invariant: heap[i].entry.delays[heap[i].kind] == i.
	heap []delay[K]
	// sequence is that of the newest delay.
	sequence uint64

	// timer runs Queue.endDelays in a goroutine of its own, at the first deadline or earlier. Nil until there is a delay.
	timer *time.Timer
	// alarm is the deadline the timer is set to; noAlarm if it is not set.
	//
	// Invariant: alarm ≤ heap[0].deadline. An alarm that comes too early sets the next one.
	alarm time.Duration
	// running counts the timer's set alarms and running goroutines, so that ShutDown can wait for them.
	running sync.WaitGroup
}

const noAlarm = time.Duration(math.MaxInt64)

// delayLocked sets a delay. Of explicit delays the earliest counts: all of them asked for a run no later than theirs.
// Of the loop's own the last counts: it is what the loop wants now. If the key is dirty, the loop needs none.
func (q *Queue[K]) delayLocked(e *entry[K], d time.Duration, kind delayKind) {
	deadline := q.now()
	if d < noAlarm-1-deadline {
		deadline += d
	} else {
		deadline = noAlarm - 1
	}
	place := int(e.delays[kind])
	switch {
	case kind == ownDelay && e.dirty:
		return
	case place < 0:
		place = q.delayed.append(e, kind)
	case kind == explicitDelay && q.delayed.heap[place].deadline <= deadline:
		return
	}
	q.delayed.sequence++
	q.delayed.heap[place].deadline, q.delayed.heap[place].sequence = deadline, q.delayed.sequence
	q.delayed.fix(place)
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
		// The last alarm has gone off, and its goroutine accounts for itself.
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
	now := q.now()
	for len(q.delayed.heap) > 0 && q.delayed.heap[0].deadline <= now {
		e := q.delayed.remove(0)
		q.markLocked(e)
	}
}

// append adds an unordered element and returns its place; fix must follow.
func (d *delays[K]) append(e *entry[K], kind delayKind) int {
	place := len(d.heap)
	d.heap = append(d.heap, delay[K]{deadline: noAlarm, entry: e, kind: kind})
	e.delays[kind] = int32(place)
	return place
}

// remove takes the element at i out and returns its entry.
func (d *delays[K]) remove(i int) *entry[K] {
	e := d.heap[i].entry
	e.delays[d.heap[i].kind] = -1
	last := len(d.heap) - 1
	if i != last {
		d.set(i, d.heap[last])
	}
	d.heap[last] = delay[K]{}
	d.heap = d.heap[:last]
	if i != last {
		d.fix(i)
	}
	return e
}

// set puts an element at i.
func (d *delays[K]) set(i int, element delay[K]) {
	d.heap[i] = element
	element.entry.delays[element.kind] = int32(i)
}

// fix moves the element at i to where its order wants it.
func (d *delays[K]) fix(i int) {
	element := d.heap[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !element.before(&d.heap[parent]) {
			break
		}
		d.set(i, d.heap[parent])
		i = parent
	}
	for {
		least := d.leastChild(i)
		if least < 0 || !d.heap[least].before(&element) {
			break
		}
		d.set(i, d.heap[least])
		i = least
	}
	d.set(i, element)
}

// leastChild returns the place of the earliest child of i, -1 if it has none.
func (d *delays[K]) leastChild(i int) int {
	first := 4*i + 1
	if first >= len(d.heap) {
		return -1
	}
	least := first
	for child := first + 1; child < min(first+4, len(d.heap)); child++ {
		if d.heap[child].before(&d.heap[least]) {
			least = child
		}
	}
	return least
}

// stopDelaysLocked drops all delays and the timer.
func (q *Queue[K]) stopDelaysLocked() {
	for i := range q.delayed.heap {
		e := q.delayed.heap[i].entry
		e.delays[q.delayed.heap[i].kind] = -1
		q.releaseLocked(e)
	}
	q.delayed.heap = nil
	if q.delayed.timer != nil && q.delayed.timer.Stop() {
		q.delayed.running.Done()
	}
}
