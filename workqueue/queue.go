package workqueue

import (
	"cmp"
	"context"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/combining"
	"github.com/flyball-dev/flyball/workqueue/internal/delayheap"
	"github.com/flyball-dev/flyball/workqueue/internal/order"
	"github.com/flyball-dev/flyball/workqueue/internal/waitlist"
)

// Queue hands keys to workers. Every key that is added is handed out, once for all the adds it received while it
// waited, and never to two workers at once.
//
// Concurrency: all methods may be called from any goroutine. Only Get, Next and Drain block. The queue calls its rate
// limiter and its metrics without holding a lock, and its Order under the queue's lock.
//
// Source: the algorithm is that of client-go v0.37.2 util/workqueue/queue.go; docs/divergence.md lists the differences.
type Queue[K comparable] struct {
	limiter   RateLimiter[K]
	metrics   Metrics
	keepsTime bool
	maxCauses int
	// group names the group of a key; nil if the Order has no groups. It is the user's code, so it is called without
	// the lock.
	group func(key K) string
	// start is the origin of the queue's clock; see now.
	start time.Time

	// mu guards everything below.
	mu combining.Mutex[add[K]]

	// The algorithm is three sets of keys: ready, dirty and processing.

	// ready holds the keys that wait for a worker, in the order in which they are handed out.
	//
	// Invariant: a key is in ready exactly once if it is dirty and not processing, and not at all otherwise.
	ready ready[K]

	// entries has the entry of each key that is in one of the sets or has a delay. The dirty keys are not in a
	// container of their own: a key is dirty if its entry has the flag dirty, which means that the key was added and no
	// run of it has begun since.
	entries table[K]

	// processing holds the keys that workers have. A key that is added meanwhile is dirty and processing at once: it
	// waits for Done, which moves it to ready once, however often it was added.
	processing processing[K]

	// delayed holds the pending delays, earliest first.
	delayed delays
	// waiting holds the Get calls that wait for a key.
	waiting  waitlist.List
	shutdown shutdown
	// spare holds records of runs for reuse.
	spare []*run[K]
	// adds and retries are counted for Stats.
	adds, retries uint64
	// clock is the last reading of the clock for nowLocked, and the hold of mu in which it was taken.
	clock struct {
		hold uint64
		now  time.Duration
	}
}

// Add makes the key ready. If the key is being processed, it becomes ready again as soon as it is done. Add cancels the
// key's requeue delay, which [Queue.AddRateLimited] or [Queue.RequeueAfter] set. After ShutDown it does nothing.
func (q *Queue[K]) Add(key K) { q.submit(key, &add[K]{}) }

// submit executes the add of any Add method. It computes the hash, which can panic, and the group, which is the user's
// code, before it takes the lock. If another goroutine has the lock, submit does not wait but delegates the add to that
// goroutine: this makes Add about four times as fast beside many workers (docs/decisions/0012-contention.md).
func (q *Queue[K]) submit(key K, a *add[K]) {
	a.key, a.hash = key, q.entries.hash(key)
	if q.group != nil {
		a.group, a.described = q.group(key), true
	}
	if !q.mu.TryLock() {
		q.mu.Delegate(a)
		return
	}
	q.addLocked(a)
	q.mu.Unlock()
}

func (q *Queue[K]) addLocked(a *add[K]) {
	if q.shutdown.begun {
		return
	}
	e := q.entries.obtain(a.key, a.hash)
	q.describeLocked(e, a)
	if a.after > 0 {
		q.delayLocked(e, a)
	} else {
		q.markDirtyLocked(e)
	}
}

// markDirtyLocked makes a key dirty, and ready unless it is processing. That is what an add without a delay does, and
// what a delay does when it expires.
func (q *Queue[K]) markDirtyLocked(e handle[K]) {
	if e.dirty {
		return // The run that is due has not begun, so it serves this add too.
	}
	e.dirty = true
	q.adds++
	q.delayed.remove(e.delays[requeueDelay])
	if q.keepsTime {
		q.stampLocked(e)
	}
	if e.processing() {
		return // Done makes the key ready.
	}
	q.ready.push(e)
	q.wakeLocked()
}

// Get waits for a key and hands it out; the caller must call [Queue.Done] for it. Errors: [ErrShutDown] when the queue
// is shut down and empty; ctx's error when ctx is done, even if keys are ready.
func (q *Queue[K]) Get(ctx context.Context) (item Item[K], err error) {
	q.mu.Lock()
	err = q.getLocked(ctx, &item)
	q.mu.Unlock()
	if err == nil && q.metrics != nil {
		q.metrics.ObserveQueueDuration(item.Queued)
	}
	return item, err
}

// getLocked fills in the caller's item rather than returning one, because an Item is so large that each copy shows in
// the benchmarks.
func (q *Queue[K]) getLocked(ctx context.Context, item *Item[K]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for !q.ready.canPop() {
		if q.endedLocked() {
			q.wakeLocked()
			return ErrShutDown
		}
		if err := q.waitLocked(ctx); err != nil {
			return err
		}
	}
	e := q.entries.at(q.ready.pop())
	e.dirty = false // From now on an add needs another run: the worker may read the object before it.
	q.processing.insert(q.beginLocked(e, item))
	q.wakeLocked()
	return nil
}

// Done marks the processing of a key as finished. If the key was added in the meantime, it becomes ready. Done does
// nothing for a key that is not being processed.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	worked := q.doneLocked(q.placeLocked(key))
	q.mu.Unlock()
	q.observeWork(worked)
}

// doneLocked is Done for the key at a place in processing. It returns how long the run took, or notMeasured if place is
// none or the queue has no metrics.
func (q *Queue[K]) doneLocked(place int32) (worked time.Duration) {
	if place == none {
		return notMeasured
	}
	w := q.processing.remove(place)
	worked = q.endLocked(w)
	if w.entry.dirty {
		q.ready.push(w.entry)
	} else if w.entry.idle() {
		q.entries.retire(w.entry)
	}
	q.wakeLocked()
	q.reportDrainedLocked()
	return worked
}

// New returns an empty queue. It starts no goroutine.
func New[K comparable](o Options[K]) *Queue[K] {
	q := &Queue[K]{
		entries:   newTable[K](),
		limiter:   o.RateLimiter,
		keepsTime: o.QueueingTime || o.Metrics != nil || o.Order != nil,
		maxCauses: cmp.Or(o.MaxCauses, 8),
		start:     time.Now(),
	}
	q.mu.Do = q.addLocked
	q.delayed = delays{heap: delayheap.New(q.placeDelay), fires: never}
	if o.Order != nil {
		q.ready.order = o.Order.ready
	}
	q.ready.limits, _ = q.ready.order.(order.Limiter[K])
	if groups, ok := q.ready.order.(order.Grouper[K]); ok {
		q.group = groups.GroupOf()
	}
	if q.limiter == nil {
		q.limiter = DefaultControllerRateLimiter[K]()
	}
	if o.Metrics != nil {
		q.metrics = o.Metrics.NewQueueMetrics(o.Name, q.Stats)
	}
	return q
}

// nowLocked is now, read once for all that happens while the lock is held.
func (q *Queue[K]) nowLocked() time.Duration {
	if hold := q.mu.Hold(); q.clock.hold != hold {
		q.clock.hold, q.clock.now = hold, q.now()
	}
	return q.clock.now
}

// now returns the time on the queue's clock, which is monotonic.
func (q *Queue[K]) now() time.Duration { return time.Since(q.start) }
