package workqueue

import (
	"math"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/delayheap"
)

// delayKind tells the two sources of a delay apart. A key has at most one pending delay of each kind.
type delayKind uint32

const (
	// scheduledAdd was set by AddAfter. It stays until it expires, or until CancelDelays, ShutDown or Drain drops it.
	scheduledAdd delayKind = iota
	// requeueDelay was set by the loop that works on the key: its retry or periodic run. Any run that comes earlier
	// cancels it.
	requeueDelay
	delayKinds
)

// delays holds the pending delays of a queue and the one timer that expires them.
type delays struct {
	// heap has the delays, earliest first. The target of each is the id of its key's entry, times two, plus the kind.
	//
	// Invariant: entry.delays[kind] is the place of the entry's delay in the heap.
	heap delayheap.Heap

	// timer runs Queue.endDelays in its own goroutine, at the first deadline or earlier. It is nil until the first
	// delay.
	timer *time.Timer
	// fires is the deadline the timer is set to; never if it is not set.
	//
	// Invariant: fires ≤ the first deadline. If the timer fires too early, endDelays sets it again.
	fires time.Duration
	// running counts the armed timer and the goroutines of timers that have fired, so that ShutDown can wait for them.
	running sync.WaitGroup
}

const never = time.Duration(math.MaxInt64)

// delayOf returns the entry that a delay belongs to, by the target, and the kind of the delay.
func (q *Queue[K]) delayOf(target uint32) (id uint32, e *entry[K], kind delayKind) {
	id, kind = target>>1, delayKind(target&1)
	return id, q.entries.at(id), kind
}

// placeDelay maintains the invariant of delays.heap.
func (q *Queue[K]) placeDelay(target uint32, place int32) {
	_, e, kind := q.delayOf(target)
	e.delays[kind] = place
}

// delayLocked sets a delay. If a key has several scheduled adds, the earliest wins, because each of them asks for a
// run no later than its deadline. Of requeue delays the last one wins, unless request.earliest is set, because
// it is what the loop wants now. A dirty key needs no requeue delay.
func (q *Queue[K]) delayLocked(id uint32, e *entry[K], r request) {
	now := q.now()
	deadline := now + min(r.after, never-1-now)
	heap, place := &q.delayed.heap, int(e.delays[r.kind])
	switch {
	case r.kind == requeueDelay && e.dirty:
		return
	case place == none:
		heap.Push(id<<1|uint32(r.kind), deadline)
	case (r.kind == scheduledAdd || r.earliest) && heap.All()[place].Deadline <= deadline:
		return
	default:
		heap.Set(place, deadline)
	}
	q.setTimerLocked()
}

// setTimerLocked resets the timer if the first deadline is earlier than the one the timer is set to.
func (q *Queue[K]) setTimerLocked() {
	d := &q.delayed
	if d.heap.Len() == 0 || d.heap.All()[0].Deadline >= d.fires {
		return
	}
	d.fires = d.heap.All()[0].Deadline
	wait := d.fires - q.now()
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
	q.delayed.fires = never
	q.endDueLocked()
	q.setTimerLocked()
}

// endDueLocked marks the keys whose deadline has passed, in order of (deadline, sequence).
func (q *Queue[K]) endDueLocked() {
	heap := &q.delayed.heap
	for now := q.now(); heap.Len() > 0 && heap.All()[0].Deadline <= now; {
		id, e, _ := q.delayOf(heap.Remove(0))
		q.markLocked(id, e)
	}
}

// Delayed returns the keys that have a pending delay, of either kind, in no order. The caller owns the slice.
func (q *Queue[K]) Delayed() []K {
	q.mu.Lock()
	defer q.mu.Unlock()
	keys := make([]K, 0, q.delayed.heap.Len())
	for _, d := range q.delayed.heap.All() {
		_, e, _ := q.delayOf(d.Target)
		keys = append(keys, e.key)
	}
	return keys
}

// CancelDelays cancels the pending delays of keys: scheduled adds, retries and periodic runs. A key that is ready, or
// was added again while it is processed, still runs.
func (q *Queue[K]) CancelDelays(keys ...K) {
	for _, key := range keys {
		q.cancel(key, scheduledAdd)
		q.cancel(key, requeueDelay)
	}
}

// CancelRequeue cancels the pending retry or periodic run of a key: the delay that AddRateLimited or RequeueAfter set.
func (q *Queue[K]) CancelRequeue(key K) { q.cancel(key, requeueDelay) }

func (q *Queue[K]) cancel(key K, kind delayKind) {
	h := q.entries.hash(key) // may panic: not under the lock
	q.mu.Lock()
	defer q.mu.Unlock()
	id, e := q.entries.search(key, h)
	if e == nil || e.delays[kind] == none {
		return
	}
	q.delayed.heap.Remove(int(e.delays[kind]))
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
	heap := &q.delayed.heap
	for heap.Len() > 0 {
		id, e, _ := q.delayOf(heap.Remove(heap.Len() - 1))
		q.unwantedLocked(id, e)
	}
	if q.delayed.timer != nil && q.delayed.timer.Stop() {
		q.delayed.running.Done()
	}
}
