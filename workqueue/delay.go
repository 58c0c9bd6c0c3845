package workqueue

import (
	"math"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/delayheap"
)

// delayKind is the source of a delay. A key has at most one pending delay of each kind.
type delayKind uint32

const (
	// scheduledAdd was set by AddAfter. It stays until it expires, or until CancelDelays, ShutDown or Drain drops it.
	scheduledAdd delayKind = iota
	// requeueDelay was set by AddRateLimited or RequeueAfter, for a retry or a periodic run. It is cancelled when the
	// key becomes dirty before it expires.
	requeueDelay
	delayKinds
)

// delays holds the pending delays of a queue and the one timer that expires them.
type delays struct {
	// heap holds the delays, earliest first. The target of a delay is the id of the key's entry times two, plus the
	// kind.
	//
	// Invariant: entry.delays[kind] is the place of the entry's delay in the heap.
	heap delayheap.Heap

	// timer runs Queue.expire in its own goroutine, at the first deadline or earlier. It is nil until the first
	// delay.
	timer *time.Timer
	// fires is the deadline the timer is set to; never if it is not set.
	//
	// Invariant: fires ≤ the first deadline. If the timer fires too early, expire sets it again.
	fires time.Duration
	// running counts the armed timer and the goroutines of timers that have fired, so that ShutDown can wait for them.
	running sync.WaitGroup
}

const never = time.Duration(math.MaxInt64)

// remove cancels the delay at a place in the heap, unless the place is none. It reports whether there was a delay.
func (d *delays) remove(place int32) bool {
	if place == none {
		return false
	}
	d.heap.Remove(int(place))
	return true
}

// delayOf returns the entry and the kind of the delay with a target.
func (q *Queue[K]) delayOf(target uint32) (e handle[K], kind delayKind) {
	return q.entries.at(target >> 1), delayKind(target & 1)
}

// placeDelay maintains the invariant of delays.heap.
func (q *Queue[K]) placeDelay(target uint32, place int32) {
	e, kind := q.delayOf(target)
	e.delays[kind] = place
}

// delayLocked sets a delay. If a key has several scheduled adds, the earliest wins, because each of them asks for a run
// no later than its deadline. If it has several requeue delays, the last one wins, because it is the controller's
// latest decision, unless add.earliest is set. A dirty key needs no requeue delay.
func (q *Queue[K]) delayLocked(e handle[K], a *add[K]) {
	now := q.now()
	deadline := now + min(a.after, never-1-now)
	heap, place := &q.delayed.heap, int(e.delays[a.kind])
	switch {
	case a.kind == requeueDelay && e.dirty:
		return
	case place == none:
		heap.Push(e.id<<1|uint32(a.kind), deadline)
	case (a.kind == scheduledAdd || a.earliest) && heap.All()[place].Deadline <= deadline:
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
		d.timer = time.AfterFunc(wait, q.expire)
	} else if !d.timer.Reset(wait) {
		// The timer had already fired, and that goroutine has its own count in running.
		d.running.Add(1)
	}
}

// expire is the timer's function. It adds the keys whose deadline has passed and sets the timer again.
func (q *Queue[K]) expire() {
	defer q.delayed.running.Done()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown.begun {
		return
	}
	q.delayed.fires = never
	q.expireLocked()
	q.setTimerLocked()
}

// expireLocked adds the keys whose deadline has passed, in order of (deadline, sequence).
func (q *Queue[K]) expireLocked() {
	heap := &q.delayed.heap
	for now := q.now(); heap.Len() > 0 && heap.All()[0].Deadline <= now; {
		e, _ := q.delayOf(heap.Remove(0))
		q.markDirtyLocked(e)
	}
}

// Delayed returns the keys that have a pending delay, of either kind, in no order. The caller owns the slice.
func (q *Queue[K]) Delayed() []K {
	q.mu.Lock()
	defer q.mu.Unlock()
	keys := make([]K, 0, q.delayed.heap.Len())
	for _, d := range q.delayed.heap.All() {
		e, _ := q.delayOf(d.Target)
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
	hash := q.entries.hash(key) // Before the lock is taken, because it panics for a key that cannot be hashed.
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries.search(key, hash); e.entry != nil && q.delayed.remove(e.delays[kind]) {
		q.reclaimLocked(e)
	}
}

// stopDelaysLocked drops all delays and stops the timer.
func (q *Queue[K]) stopDelaysLocked() {
	heap := &q.delayed.heap
	for heap.Len() > 0 {
		e, _ := q.delayOf(heap.Remove(heap.Len() - 1))
		q.reclaimLocked(e)
	}
	if q.delayed.timer != nil && q.delayed.timer.Stop() {
		q.delayed.running.Done()
	}
}
