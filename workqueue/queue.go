package workqueue

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/combining"
	"github.com/flyball-dev/flyball/workqueue/internal/delayheap"
	"github.com/flyball-dev/flyball/workqueue/internal/order"
	"github.com/flyball-dev/flyball/workqueue/internal/waitlist"
)

// Queue hands keys to workers. Every key that is added is handed out, once for all the adds it received while it
// waited, and never to two workers at once.
//
// Concurrency: all methods may be called from any goroutine. Only Get and Drain block. The queue calls its rate limiter
// and its metrics without holding a lock, and its Order under the queue's lock.
//
// Source: the algorithm is that of client-go v0.37.2 util/workqueue/queue.go; docs/divergence.md lists the differences.
type Queue[K comparable] struct {
	limiter   RateLimiter[K]
	metrics   Metrics
	keepsTime bool
	maxCauses int
	// start is the origin of the queue's clock; see now.
	start time.Time

	// mu guards everything below. Adds are left to whoever holds it.
	mu combining.Mutex[admission[K]]

	// entries has one entry for each key that is ready, processing or delayed, and for some keys that recently were.
	entries table[K]

	// ready holds the entries that are ready to be handed out. It stays empty if there is an Order, which then holds
	// the ready keys.
	//
	// Invariant: a key is in ready (or order) exactly once if it is dirty and not processing, and not at all otherwise.
	ready lanes[K]
	order order.Order[K]
	// limits is order, if order can hold keys back; otherwise nil.
	limits order.Limiter[K]
	// group names the group of a key; nil if order has no groups. It is called without the lock.
	group func(key K) string

	// processing holds the runs that were handed out and are not done, in no particular order.
	//
	// Invariant: processing[i].entry.place == i. So a key is in it at most once.
	processing []work[K]

	// delayed holds the pending delays, earliest first.
	delayed delays

	// waiting are the Get calls that wait for a key.
	waiting waitlist.List

	shutdown shutdown

	// adds and retries are counted for Stats.
	adds, retries uint64

	// spare holds records of runs for reuse.
	spare []*run[K]
}

// work is a run that was handed out.
type work[K comparable] struct {
	id    uint32
	entry *entry[K]
	// run is the run that the entry had before it was handed out. The worker reads its causes until Done.
	run *run[K]
	// began is when the key was handed out; zero if the queue does not measure time.
	began time.Duration
}

// New returns an empty queue. It starts no goroutine.
func New[K comparable](o Options[K]) *Queue[K] {
	q := &Queue[K]{
		limiter:   o.RateLimiter,
		keepsTime: o.QueueingTime || o.Metrics != nil || o.Order != nil,
		maxCauses: cmp.Or(o.MaxCauses, 8),
		start:     time.Now(),
		entries:   newTable[K](),
	}
	q.mu.Do = q.executeLocked
	q.delayed = delays{heap: delayheap.New(q.placeDelay), fires: never}
	if o.Order != nil {
		q.order = o.Order.ready
	}
	q.limits, _ = q.order.(order.Limiter[K])
	if groups, ok := q.order.(order.Grouper[K]); ok {
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

// Done marks the processing of a key as finished. If the key was added in the meantime, it becomes ready. Done does
// nothing for a key that is not being processed.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	worked := q.doneLocked(key)
	q.mu.Unlock()
	q.observeWork(worked)
}

// Next is Done of a key and then Get. While keys are ready it takes the lock once, so a worker that uses it contends
// for the lock with the others half as often.
func (q *Queue[K]) Next(ctx context.Context, done K) (item Item[K], err error) {
	q.mu.Lock()
	worked := q.doneLocked(done)
	if worked != notMeasured && !q.openLocked() { // A worker that waits has reported what it did before.
		q.mu.Unlock()
		q.observeWork(worked)
		worked = notMeasured
		q.mu.Lock()
	}
	err = q.getLocked(ctx, &item)
	q.mu.Unlock()
	q.observeWork(worked)
	if err == nil && q.metrics != nil {
		q.metrics.ObserveQueueDuration(item.Queued)
	}
	return item, err
}

func (q *Queue[K]) getLocked(ctx context.Context, item *Item[K]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for !q.openLocked() {
		if q.shutdown.begun && q.readyLocked() == 0 {
			return ErrShutDown
		}
		if err := q.waitLocked(ctx); err != nil {
			return err
		}
	}
	q.takeLocked(item)
	q.wakeLocked()
	if q.limits != nil && q.shutdown.begun && q.readyLocked() == 0 {
		q.waiting.WakeAll() // They waited for keys that were held back.
	}
	return nil
}

// doneLocked ends the processing of a key, and returns how long it took; notMeasured if the queue does not measure that
// or no worker has the key.
func (q *Queue[K]) doneLocked(key K) (worked time.Duration) {
	place := q.placeLocked(key)
	if place == none {
		return notMeasured
	}
	worked = notMeasured
	if began := q.finishLocked(place); q.metrics != nil {
		worked = q.now() - began
	}
	if q.limits != nil {
		q.wakeLocked() // a key may have been held back
	}
	q.reportDrainedLocked()
	return worked
}

const notMeasured = -1

func (q *Queue[K]) observeWork(worked time.Duration) {
	if worked != notMeasured {
		q.metrics.ObserveWorkDuration(worked)
	}
}

// Forget resets the failure count of the key. Call it when processing succeeded or was given up: the next failure then
// counts as the first.
func (q *Queue[K]) Forget(key K) {
	q.limiter.Forget(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries.find(key); e != nil {
		e.attempt = 0
	}
}

// NumRequeues returns how many failures the rate limiter has counted since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// admitLocked adds a key as r says.
func (q *Queue[K]) admitLocked(key K, h uint64, r request, group string) {
	id, e := q.entries.obtain(key, h)
	if r.priority != 0 || e.run != nil || r.cause != nil || q.group != nil {
		q.describeLocked(id, e, r, group)
	}
	if r.failed {
		q.retries++
		e.attempt = min(e.attempt, math.MaxUint16-1) + 1
	}
	if r.after > 0 {
		q.delayLocked(id, e, r)
	} else {
		q.markLocked(id, e)
	}
}

// describeLocked records the priority and cause of a request. The highest priority wins.
func (q *Queue[K]) describeLocked(id uint32, e *entry[K], r request, group string) {
	asked := e.wanted()
	next := q.runLocked(id, e)
	next.Group = group
	before := next.Priority
	if !asked || r.priority > before {
		next.Priority = r.priority
	}
	switch {
	case !e.dirty || e.processing():
	case q.order != nil:
		q.order.Touch(&next.Run)
	case before < 0 && next.Priority >= 0:
		q.ready.raise(next)
	}
	if r.cause != nil && len(next.causes) < q.maxCauses { // The oldest are kept: they tell what began it.
		next.causes = append(next.causes, *r.cause)
	} else if r.cause != nil {
		next.dropped++
	}
}

// markLocked makes the key dirty, and ready unless it is processing.
func (q *Queue[K]) markLocked(id uint32, e *entry[K]) {
	if place := e.delays[requeueDelay]; place != none {
		q.delayed.heap.Remove(int(place))
	}
	if e.dirty {
		return
	}
	e.dirty = true
	q.adds++
	if q.keepsTime {
		q.runLocked(id, e).Since = q.now()
	}
	if !e.processing() {
		q.pushLocked(id, e)
	}
}

// pushLocked makes a dirty key ready.
func (q *Queue[K]) pushLocked(id uint32, e *entry[K]) {
	if q.order != nil {
		q.order.Push(&e.run.Run)
	} else {
		q.ready.push(id, e.run)
	}
	q.wakeLocked()
}

// readyLocked returns the number of ready keys.
func (q *Queue[K]) readyLocked() int {
	if q.order != nil {
		return q.order.Len()
	}
	return q.ready.len()
}

// openLocked reports whether a key may be handed out.
func (q *Queue[K]) openLocked() bool {
	if q.limits != nil {
		return q.limits.Open()
	}
	return q.readyLocked() > 0
}

// takeLocked moves the first ready key to processing. At least one key must be ready. It fills in the caller's item
// rather than returning one, because an Item is so large that each copy shows in the benchmarks.
func (q *Queue[K]) takeLocked(item *Item[K]) {
	var id uint32
	if q.order != nil {
		id = q.order.Pop().ID
	} else {
		id = q.ready.pop()
	}
	e := q.entries.at(id)
	item.Key, item.Attempt = e.key, int(e.attempt)
	w := work[K]{id: id, entry: e, run: e.run}
	if q.keepsTime {
		w.began = q.now()
	}
	if e.run != nil {
		item.Priority, item.Causes, item.DroppedCauses = e.run.Priority, e.run.causes, e.run.dropped
		item.Queued = w.began - e.run.Since
	}
	e.dirty, e.run = false, nil
	if q.group != nil && e.delays[scheduledAdd] != none {
		q.runLocked(id, e).Group = w.run.Group // The run after this one is asked for already.
	}
	e.place = int32(len(q.processing))
	q.processing = append(q.processing, w)
}

// placeLocked returns the place of the key's run in processing, or none. With few runs, a linear search is faster than
// the table.
func (q *Queue[K]) placeLocked(key K) int32 {
	if len(q.processing) <= 4 {
		for i := range q.processing {
			if q.processing[i].entry.key == key {
				return int32(i)
			}
		}
		return none
	}
	if e := q.entries.find(key); e != nil {
		return e.place
	}
	return none
}

// finishLocked ends the run at the given place and returns when it began. If the key is dirty, it becomes ready.
func (q *Queue[K]) finishLocked(place int32) time.Duration {
	w := q.processing[place]
	last := len(q.processing) - 1
	q.processing[place] = q.processing[last]
	q.processing[place].entry.place = place
	q.processing[last] = work[K]{}
	q.processing = q.processing[:last]

	w.entry.place = none
	if q.limits != nil {
		q.limits.Done(&w.run.Run)
	}
	q.recycleLocked(w.run)
	if w.entry.dirty {
		q.pushLocked(w.id, w.entry)
	} else if w.entry.idle() {
		q.entries.retire(w.id, w.entry)
	}
	return w.began
}

// now returns the time on the queue's clock, which is monotonic.
func (q *Queue[K]) now() time.Duration { return time.Since(q.start) }
