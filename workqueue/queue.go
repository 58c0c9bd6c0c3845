package workqueue

import (
	"context"
	"sync"
	"time"
)

// Queue hands keys to workers: each key that was added is handed out, never to two workers at once, and once for
// all the adds it got while it waited.
//
// Concurrency: all methods may be called from any goroutine. Only Get, Drain and, shortly, ShutDown block. Rate limiter and metrics
// are called without a lock held.
//
// Source: the algorithm is that of client-go v0.37.2 util/workqueue/queue.go; docs/divergence.md says where this differs.
type Queue[K comparable] struct {
	limiter   RateLimiter[K]
	metrics   Metrics
	keepsTime bool
	maxCauses int
	// start is the origin of the queue's clock; see now.
	start time.Time

	// mu guards everything below.
	mu sync.Mutex

	// entries has one entry for each key that is ready, processing or delayed, and so no memory of any other key.
	entries map[K]*entry[K]

	// ready holds the keys that may be handed out, in the order they will be.
	//
	// Invariant: an entry is in ready, once, exactly if it is dirty and not processing.
	ready fifo[K]

	// processing holds the keys that were handed out and are not done, in no order.
	processing []work[K]

	// delayed holds the delays that have not ended, the earliest first.
	delayed delays[K]

	// waiters are the Gets that wait for a key.
	waiters waiters

	shutdown shutdown

	// adds and retries are counted for Stats.
	adds, retries uint64

	// spareCauses are lists that nobody uses.
	spareCauses []*causes
}

// work is a key that was handed out.
type work[K comparable] struct {
	// Invariant: Queue.processing[i].entry.place == i.
	entry *entry[K]
	// began is when the key was handed out; zero if the queue keeps no time.
	began time.Duration
	// causes are those of this run; the worker reads them until Done.
	causes *causes
}

// New returns an empty queue. It starts nothing: a queue has no goroutine of its own.
func New[K comparable](o Options[K]) *Queue[K] {
	q := &Queue[K]{
		limiter:   o.RateLimiter,
		keepsTime: o.QueueingTime || o.Metrics != nil,
		maxCauses: o.MaxCauses,
		start:     time.Now(),
		entries:   make(map[K]*entry[K]),
		delayed:   delays[K]{alarm: noAlarm},
	}
	if q.limiter == nil {
		q.limiter = DefaultControllerRateLimiter[K]()
	}
	if q.maxCauses == 0 {
		q.maxCauses = defaultMaxCauses
	}
	if o.Metrics != nil {
		q.metrics = o.Metrics.NewQueueMetrics(o.Name, q.Stats)
	}
	return q
}

// Add makes the key ready, or, while it is processing, ready again as soon as it is done. It cancels the delay that
// the loop itself has set for the key ([Queue.AddRateLimited], [Queue.RequeueAfter]). After ShutDown it does nothing.
func (q *Queue[K]) Add(key K) { q.admit(key, request{}) }

// AddWithCause is Add, and remembers why.
func (q *Queue[K]) AddWithCause(key K, c Cause) { q.admit(key, request{cause: &c}) }

// AddAfter adds the key when d has passed. The delay is kept whatever else happens to the key; of several, the one that
// ends first counts. Zero or less is [Queue.Add].
func (q *Queue[K]) AddAfter(key K, d time.Duration) { q.admit(key, request{after: d}) }

// AddRateLimited counts a failure of the key and adds it when the rate limiter says so. It is the loop's own retry:
// whatever makes the key run earlier replaces it.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, AddOptions{RateLimited: true}) }

// RequeueAfter adds the key when d has passed, unless something makes it run earlier: the loop's own periodic run.
// A later call replaces an earlier one. Zero or less is [Queue.Add].
func (q *Queue[K]) RequeueAfter(key K, d time.Duration) {
	q.admit(key, request{after: d, kind: ownDelay})
}

// AddWith adds the key as the options say.
func (q *Queue[K]) AddWith(key K, o AddOptions) {
	r := request{after: o.After, failed: o.RateLimited}
	if o.Requeue || o.RateLimited {
		r.kind = ownDelay
	}
	if o.RateLimited && !q.ShuttingDown() {
		r.after = max(r.after, q.limiter.When(key))
	}
	if o.Priority != nil {
		r.priority = *o.Priority
	}
	if o.Cause != (Cause{}) {
		r.cause = &o.Cause
	}
	q.admit(key, r)
}

// Get waits for a key and hands it out; the caller must call [Queue.Done] for it. Errors: [ErrShutDown] when the queue
// is shut down and empty; ctx's error when ctx is done, even if keys are ready.
func (q *Queue[K]) Get(ctx context.Context) (Item[K], error) {
	if err := ctx.Err(); err != nil {
		return Item[K]{}, err
	}
	q.mu.Lock()
	for q.ready.len() == 0 {
		if q.shutdown.begun {
			q.mu.Unlock()
			return Item[K]{}, ErrShutDown
		}
		if err := q.waitLocked(ctx); err != nil {
			q.mu.Unlock()
			return Item[K]{}, err
		}
	}
	item := q.takeLocked()
	q.wakeLocked()
	q.mu.Unlock()
	if q.metrics != nil {
		q.metrics.ObserveQueueDuration(item.Queued)
	}
	return item, nil
}

// Done says that the work on a key is over. If the key was added meanwhile, it becomes ready. Done of a key that is not
// being processed does nothing.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	e := q.entries[key]
	if e == nil || !e.processing() {
		q.mu.Unlock()
		return
	}
	began := q.finishLocked(e)
	if e.dirty {
		q.ready.push(e)
		q.wakeLocked()
	} else {
		q.releaseLocked(e)
	}
	q.reportDrainedLocked()
	q.mu.Unlock()
	if q.metrics != nil {
		q.metrics.ObserveWorkDuration(q.now() - began)
	}
}

// Forget says that the key's work succeeded, or was given up: the next failure is the first again.
func (q *Queue[K]) Forget(key K) {
	q.limiter.Forget(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[key]; e != nil {
		e.attempt = 0
	}
}

// NumRequeues returns the failures the rate limiter has counted since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// Len returns the number of keys that are ready.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.len()
}

// Stats returns a snapshot of the queue.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Depth: q.ready.len(), Delayed: len(q.delayed.heap), Processing: len(q.processing),
		Adds: q.adds, Retries: q.retries,
	}
	if !q.keepsTime {
		return s
	}
	now := q.now()
	for i := range q.processing {
		running := now - q.processing[i].began
		s.UnfinishedWork += running
		s.LongestRunning = max(s.LongestRunning, running)
	}
	return s
}

// request is one wish that a key be worked on, as the Add methods state it.
type request struct {
	after    time.Duration
	kind     delayKind
	priority int
	cause    *Cause
	// failed: the key is added because work on it failed.
	failed bool
}

// admit is what all Add methods come down to.
func (q *Queue[K]) admit(key K, r request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown.begun {
		return
	}
	e := q.entryLocked(key)
	e.raise(r.priority)
	q.noteLocked(e, r.cause)
	if r.failed {
		e.attempt++
		q.retries++
	}
	if r.after > 0 {
		q.delayLocked(e, r.after, r.kind)
	} else {
		q.markLocked(e)
	}
}

// entryLocked returns the key's entry, a new one if there is none.
func (q *Queue[K]) entryLocked(key K) *entry[K] {
	e := q.entries[key]
	if e == nil {
		e = &entry[K]{key: key, place: -1, delays: [delayKinds]int32{-1, -1}}
		q.entries[key] = e
	}
	return e
}

// releaseLocked drops the entry if nothing is to come and nothing is going on.
func (q *Queue[K]) releaseLocked(e *entry[K]) {
	if !e.pending() && !e.processing() {
		q.freeCausesLocked(e.causes)
		delete(q.entries, e.key)
	}
}

// markLocked makes the key dirty, and ready unless it is processing.
func (q *Queue[K]) markLocked(e *entry[K]) {
	if own := e.delays[ownDelay]; own >= 0 {
		q.delayed.remove(int(own))
	}
	if e.dirty {
		return
	}
	e.dirty = true
	q.adds++
	if q.keepsTime {
		e.wanted = q.now()
	}
	if !e.processing() {
		q.ready.push(e)
		q.wakeLocked()
	}
}

// takeLocked moves the first ready key to processing. There must be one.
func (q *Queue[K]) takeLocked() Item[K] {
	e := q.ready.pop()
	item := Item[K]{Key: e.key, Attempt: int(e.attempt), Priority: e.priority}
	w := work[K]{entry: e, causes: e.causes}
	if q.keepsTime {
		w.began = q.now()
		item.Queued = w.began - e.wanted
	}
	if w.causes != nil {
		item.Causes, item.DroppedCauses = w.causes.list, w.causes.dropped
	}
	e.dirty, e.causes = false, nil
	e.place = int32(len(q.processing))
	q.processing = append(q.processing, w)
	return item
}

// finishLocked takes the entry out of processing and returns when that began.
func (q *Queue[K]) finishLocked(e *entry[K]) time.Duration {
	w := q.processing[e.place]
	last := len(q.processing) - 1
	q.processing[e.place] = q.processing[last]
	q.processing[e.place].entry.place = e.place
	q.processing[last] = work[K]{}
	q.processing = q.processing[:last]
	e.place = -1
	q.freeCausesLocked(w.causes)
	return w.began
}

// now returns the time on the queue's clock, which is monotonic.
func (q *Queue[K]) now() time.Duration { return time.Since(q.start) }
