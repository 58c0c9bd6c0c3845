package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/latency"
	"github.com/flyball-dev/flyball/reconcile/internal/text"
	"github.com/flyball-dev/flyball/workqueue"
)

// Loop is the part of a controller that does not depend on the type of its keys. It returns what the controller has
// done and what it still has to do. [Controller] implements it.
type Loop interface {
	Name() string
	Stats() Stats
	Work() Work
}

// Work is what a controller has to do at one moment.
type Work struct {
	// Started reports whether the workers have begun: every source has delivered its initial keys.
	Started bool
	// Ready is the number of keys that could be reconciled now, and InFlight the number of keys that are being
	// reconciled.
	Ready, InFlight int
	// Delayed has the delayed keys, the earliest first.
	Delayed []Delayed
	// Failing has the keys whose last reconcile failed, in no order. It includes keys that were given up. A key is
	// removed when it is reconciled without an error.
	Failing []Failing
}

// The reasons why a key is delayed.
const (
	WhyRetry    = "Retry"    // It failed.
	WhyStale    = "Stale"    // The cache was behind a write of this process.
	WhyDeferred = "Deferred" // Options.MinInterval or Debounce put it off.

	whyRequeue = "RequeueAfter" // The [Result] asked for another run.
)

// Delayed is a pending delay of a key. A key can have two, a requeue delay and one that AddAfter set.
type Delayed struct {
	Key string
	In  time.Duration
	// Why is WhyRetry, WhyStale, WhyDeferred, or the event of the last cause. That event is "RequeueAfter" if the
	// reconciler asked for the delay, "EnqueueAfter" if Controller.EnqueueAfter set it, and otherwise an event of a
	// source or "".
	Why     string
	Attempt int
}

// Failing is a key whose last reconcile failed.
type Failing struct {
	Key string
	Err error
	// Attempts is the number of failures in a row.
	Attempts int
	// GivenUp reports whether the key is not retried.
	GivenUp bool
	// Causes are the causes of the last reconcile.
	Causes []workqueue.Cause
}

func (c *engine[K]) Work() Work {
	// Read Started first: if it is true, the queue already has the initial keys of every source.
	w := Work{Started: c.feeds.Synced()}
	c.mu.Lock()
	w.InFlight = len(c.keys.running)
	for _, e := range c.keys.entries {
		if e.failure != nil {
			w.Failing = append(w.Failing, *e.failure)
		}
	}
	c.mu.Unlock()
	queue := c.queue.Stats()
	w.Ready, w.InFlight = queue.Depth, max(w.InFlight, queue.Processing)
	for _, d := range c.queue.View(queue.Delayed).Delayed {
		w.Delayed = append(w.Delayed,
			Delayed{Key: fmt.Sprint(d.Key), In: max(d.Time, 0), Attempt: d.Attempt, Why: c.why(d)})
	}
	return w
}

// why returns the reason of a delay. The causes alone do not show the reason: they belong to all delays of the key, and
// the queue drops some causes if there are many.
func (c *engine[K]) why(d workqueue.KeyView[K]) string {
	if d.Requeue && c.deferred(d.Key) {
		return WhyDeferred
	}
	last := ""
	for _, cause := range slices.Backward(d.Causes) {
		if d.Requeue == c.isOwn(cause) {
			last = cause.Event
			break
		}
	}
	if d.Requeue && d.Attempt > 0 && last != WhyStale { // After a success, Attempt would be 0.
		return WhyRetry
	}
	return last
}

// deferred reports whether Options.MinInterval or Debounce put the key off.
func (c *engine[K]) deferred(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.keys.find(key)
	return e != nil && e.debounce.Waiting()
}

// cause returns the cause of a run that the loop itself asks for.
func (c *engine[K]) cause(why string) workqueue.Cause {
	return workqueue.Cause{Source: c.name, Event: why, Time: time.Now()}
}

// isOwn reports whether the loop itself made the cause.
func (c *engine[K]) isOwn(cause workqueue.Cause) bool {
	return cause.Source == c.name && (cause.Event == WhyRetry || cause.Event == WhyStale || cause.Event == whyRequeue)
}

// mostFailures bounds the number of entries with a failure.
const mostFailures = 10_000

func (c *engine[K]) InFlight() []string {
	c.mu.Lock()
	running := c.keys.began()
	c.mu.Unlock()
	keys := make([]string, 0, len(running))
	for key, began := range running {
		keys = append(keys, fmt.Sprintf("%v (running for %s)", key, time.Since(began).Round(time.Millisecond)))
	}
	slices.Sort(keys)
	return keys
}

func (c *engine[K]) View(limit int) workqueue.View[string] {
	v := c.queue.View(limit)
	c.mu.Lock()
	running := c.keys.began()
	c.mu.Unlock()
	for i := range v.Processing {
		if began, ok := running[v.Processing[i].Key]; ok {
			v.Processing[i].Time = time.Since(began)
		}
	}
	return text.View(v)
}

func (c *engine[K]) Left(limit int) []string {
	view := c.View(limit)
	keys := make([]string, 0, len(view.Ready)+len(view.Processing))
	for _, v := range slices.Concat(view.Processing, view.Ready) {
		keys = append(keys, v.Key)
	}
	slices.Sort(keys)
	keys = slices.Compact(keys) // A key in flight may also be ready to run again.
	return keys[:min(limit, len(keys))]
}

// Stats counts what a controller has done since it was made.
type Stats struct {
	Events   uint64 // changes that its sources have seen
	Adds     uint64 // keys that sources and Enqueue added, before the queue merges equal ones
	Syncs    uint64 // reconciles that ended
	Done     uint64 // reconciles that succeeded and asked for no further run
	Requeues uint64 // reconciles that succeeded and asked for a further run (Result.RequeueAfter or Requeue)
	Errors   uint64 // reconciles that failed, including terminal errors and panics
	Terminal uint64 // reconciles that failed with an error from Terminal
	Timeouts uint64 // reconciles that took longer than Options.Timeout
	Panics   uint64 // reconciles that panicked
	Retries  uint64 // reconciles that failed and are retried with backoff
	Dropped  uint64 // reconciles that failed and are not retried: terminal errors, and those past MaxRetries
	Stale    uint64 // reconciles that found the cache behind a write of this process
	Hung     uint64 // reconciles that took longer than Options.HungAfter, even if they ended later
	Deferred uint64 // times that a key was put off, most of them by Options.MinInterval or Debounce
	Workers  int    // reconciles that may run at once
	InFlight int    // reconciles that are running
	Peak     int    // the largest number of reconciles that ever ran at once
	Queued   int    // keys that are ready to run
	Held     int    // keys that Warmup holds back until Run is called

	ReconcileTime latency.Latency // the durations of the reconciles
}

// buckets are the upper bounds of the buckets of Stats.ReconcileTime.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/metrics, controller_runtime_reconcile_time_seconds.
var buckets = seconds(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
	1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60)

func seconds(all ...float64) (bounds []time.Duration) {
	for _, s := range all {
		bounds = append(bounds, time.Duration(s*float64(time.Second)))
	}
	return bounds
}

func (c *engine[K]) Stats() Stats {
	ended := func(how outcome) uint64 { return c.outcomes[how].Load() }
	s := Stats{
		Events:   c.stats.Events.Load(),
		Adds:     c.stats.Adds.Load(),
		Done:     ended(succeeded),
		Requeues: ended(requeue) + ended(requeueAfter),
		Errors:   ended(terminal) + ended(retry) + ended(givenUp),
		Terminal: ended(terminal),
		Timeouts: c.stats.Timeouts.Load(),
		Panics:   c.stats.Panics.Load(),
		Retries:  ended(retry),
		Dropped:  ended(terminal) + ended(givenUp),
		Stale:    ended(stale),
		Hung:     c.stats.Hung.Load(),
		Deferred: c.stats.Deferred.Load(),
		Workers:  c.options.Workers,
		Queued:   c.queue.Len(),
		Held:     c.feeds.Held(),

		ReconcileTime: c.durations.Snapshot(),
	}
	s.Syncs = s.ReconcileTime.Count
	c.mu.Lock()
	defer c.mu.Unlock()
	s.InFlight, s.Peak = len(c.keys.running), c.keys.peak
	return s
}
