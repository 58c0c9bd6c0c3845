package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/latency"
	"github.com/flyball-dev/flyball/reconcile/internal/counters"
	"github.com/flyball-dev/flyball/reconcile/internal/text"
	"github.com/flyball-dev/flyball/workqueue"
)

// Loop is what is common to controllers of all kinds of keys: what they do and what is left to do. [Controller]
// implements it.
type Loop interface {
	Name() string
	Stats() Stats
	Work() Work
}

// Work is what a controller has before it, at one moment.
type Work struct {
	// Started says that the workers run: every source has handed over what there was at its start.
	Started bool
	// Ready keys could be reconciled now, InFlight ones are.
	Ready, InFlight int
	// Delayed are the keys that wait for their time, the earliest first.
	Delayed []Delayed
	// Failing are the keys whose last reconcile failed, those given up among them, in no order. A key that is
	// reconciled without an error leaves.
	Failing []Failing
}

// Why a key is delayed: after a failure, when the cache was behind an own write, and by Options.MinInterval or
// Debounce.
const (
	WhyRetry = "Retry"
	WhyStale = "Stale"
	WhyPaced = "Paced"
	// whyRequeue is for a [Result] that asks for another run.
	whyRequeue = "RequeueAfter"
)

// Delayed is a key that waits for its time.
type Delayed struct {
	Key string
	In  time.Duration
	// Why is WhyRetry, WhyStale, WhyPaced, or the event of the last cause: "RequeueAfter" when the reconciler asked
	// for it, "EnqueueAfter" when something else did; what a source calls it; or "". A key that waits twice is listed
	// twice.
	Why     string
	Attempt int
}

// Failing is a key whose last reconcile failed.
type Failing struct {
	Key string
	Err error
	// Attempts is how often it failed in a row. GivenUp says that it is not retried.
	Attempts int
	GivenUp  bool
	// Causes are why the last reconcile ran.
	Causes []workqueue.Cause
}

func (c *engine[K]) Work() Work {
	w := Work{Started: c.feeds.Fed()} // Read first: the queue read below then has all that the sources handed over.
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

// why says why a key is delayed. Its causes alone do not tell: they are those of all that it waits for, and of many
// the first.
func (c *engine[K]) why(d workqueue.KeyView[K]) string {
	if d.Requeue && c.waiting(d.Key) {
		return WhyPaced
	}
	last := ""
	for _, cause := range slices.Backward(d.Causes) {
		if d.Requeue == c.ownCause(cause) {
			last = cause.Event
			break
		}
	}
	if d.Requeue && d.Attempt > 0 && last != WhyStale { // A success forgets the attempts.
		return WhyRetry
	}
	return last
}

// waiting reports whether Options.MinInterval or Debounce put the key off.
func (c *engine[K]) waiting(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.keys.entries[key]
	return e != nil && e.debounce.Waiting()
}

// cause is what became of a reconcile, for the queue.
func (c *engine[K]) cause(why string) workqueue.Cause {
	return workqueue.Cause{Source: c.name, Event: why, Time: time.Now()}
}

// ownCause reports whether the method cause returned it, for a key that this controller queued again.
func (c *engine[K]) ownCause(cause workqueue.Cause) bool {
	return cause.Source == c.name && (cause.Event == WhyRetry || cause.Event == WhyStale || cause.Event == whyRequeue)
}

// mostFailures bounds how many failures are remembered.
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
	keys = slices.Compact(keys) // one that is in flight may be queued again
	return keys[:min(limit, len(keys))]
}

// Stats counts what a controller has done since it was made.
type Stats struct {
	Events   uint64 // changes that its sources heard of
	Adds     uint64 // keys that the sources made of them, or Enqueue was given, before the queue merges equal ones
	Syncs    uint64 // reconciles that ended
	Done     uint64 // reconciles after which there was nothing more to do
	Requeues uint64 // reconciles that asked to be repeated (Result.RequeueAfter)
	Errors   uint64 // reconciles that ended with an error, terminal ones and panics among them
	Terminal uint64 // reconciles that ended with an error from Terminal
	Timeouts uint64 // reconciles that took longer than Options.Timeout
	Panics   uint64 // reconciles that panicked
	Retries  uint64 // keys put back with backoff
	Dropped  uint64 // keys given up: terminal errors, and those past MaxRetries
	Stale    uint64 // reconciles put off because the cache was behind a write of this process
	Hung     uint64 // reconciles that took longer than Options.HungAfter, those that ended after all among them
	Deferred uint64 // times that a key was put off by Options.MinInterval or Debounce
	Workers  int    // reconciles that may run at once
	InFlight int    // reconciles running now
	Peak     int    // the most that ever ran at once
	Queued   int    // keys ready to run now
	Held     int    // keys that Warmup holds back until Run is called

	Took latency.Latency // how long the reconciles took
}

// durations are the bounds of the buckets of Stats.Took.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/metrics, controller_runtime_reconcile_time_seconds.
var durations = seconds(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
	1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60)

func seconds(all ...float64) (bounds []time.Duration) {
	for _, s := range all {
		bounds = append(bounds, time.Duration(s*float64(time.Second)))
	}
	return bounds
}

func (c *engine[K]) Stats() Stats {
	s := counted(&c.stats)
	c.mu.Lock()
	s.InFlight, s.Peak = len(c.keys.running), c.keys.peak
	c.mu.Unlock()
	s.Workers, s.Queued, s.Held = c.options.Workers, c.queue.Len(), c.feeds.Held()
	s.Took = c.took.Snapshot()
	return s
}

// counted returns a snapshot of the counters. The fields that are no counters are zero.
func counted(l *counters.Live) Stats {
	return Stats{
		Events:   l.Events.Load(),
		Adds:     l.Adds.Load(),
		Syncs:    l.Syncs.Load(),
		Done:     l.Done.Load(),
		Requeues: l.Requeues.Load(),
		Errors:   l.Errors.Load(),
		Terminal: l.Terminal.Load(),
		Timeouts: l.Timeouts.Load(),
		Panics:   l.Panics.Load(),
		Retries:  l.Retries.Load(),
		Dropped:  l.Dropped.Load(),
		Stale:    l.Stale.Load(),
		Hung:     l.Hung.Load(),
		Deferred: l.Deferred.Load(),
	}
}
