package reconcile

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Loop is what is common to controllers of all kinds of keys: what they do and what is left to do. [Controller] implements it.
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
	// Failing are the keys whose last reconcile failed, those given up among them, in no order. A key that is reconciled without an
	// error leaves.
	Failing []Failing
}

// Why a key is delayed: after a failure, when the cache was behind an own write, and by Options.MinInterval or Debounce.
const (
	WhyRetry = "Retry"
	WhyStale = "Stale"
	WhyPaced = "Paced"
	// whyRequeue is for [Result].RequeueAfter.
	whyRequeue = "RequeueAfter"
)

// Delayed is a key that waits for its time.
type Delayed struct {
	Key string
	In  time.Duration
	// Why is WhyRetry, WhyStale, WhyPaced, or the event of the last cause: "RequeueAfter" when the reconciler asked for it,
	// "EnqueueAfter" when something else did; what a source calls it; or "". A key that waits twice is listed twice.
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

// Work tells what there is to do. It costs as much as there are delayed keys: ask after Stats says that nothing else is left.
func (c *Controller[K]) Work() Work {
	c.mu.Lock()
	w := Work{Started: c.phase == running && c.round == nil, InFlight: len(c.inFlight)}
	for _, f := range c.feeds {
		select {
		case <-f.synced:
		default:
			w.Started = false
		}
	}
	c.mu.Unlock()
	queue := c.queue.Stats()
	w.Ready, w.InFlight = queue.Depth, max(w.InFlight, queue.Processing)
	for _, d := range c.queue.View(queue.Delayed).Delayed {
		w.Delayed = append(w.Delayed, Delayed{Key: fmt.Sprint(d.Key), In: max(d.Time, 0), Attempt: d.Attempt, Why: c.why(d)})
	}
	w.Failing = c.failures.list()
	return w
}

// why says why a key is delayed. Its causes alone do not tell: they are those of all that it waits for, and of many the first.
func (c *Controller[K]) why(d workqueue.KeyView[K]) string {
	if d.Own && c.pace.holds(d.Key) {
		return WhyPaced
	}
	last := ""
	for _, cause := range slices.Backward(d.Causes) {
		if d.Own == c.ownCause(cause) {
			last = cause.Event
			break
		}
	}
	if d.Own && d.Attempt > 0 && last != WhyStale { // A success forgets the attempts.
		return WhyRetry
	}
	return last
}

// cause is what became of a reconcile, for the queue.
func (c *Controller[K]) cause(why string) workqueue.Cause {
	return workqueue.Cause{Source: c.name, Event: why, Time: time.Now()}
}

// ownCause says whether a cause is one of [Controller.cause].
func (c *Controller[K]) ownCause(cause workqueue.Cause) bool {
	return cause.Source == c.name && (cause.Event == WhyRetry || cause.Event == WhyStale || cause.Event == whyRequeue)
}

// failures remembers the last error of every key that fails.
type failures[K comparable] struct {
	mu   sync.Mutex
	keys map[K]Failing // nil until something fails
}

// mostFailures bounds what is remembered, for controllers that live long and give up much.
const mostFailures = 10_000

func (f *failures[K]) failed(item workqueue.Item[K], err error, givenUp bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		f.keys = map[K]Failing{}
	}
	last, known := f.keys[item.Key]
	if !known && len(f.keys) >= mostFailures {
		return
	}
	f.keys[item.Key] = Failing{
		Key: fmt.Sprint(item.Key), Err: err, Attempts: last.Attempts + 1, GivenUp: givenUp,
		Causes: slices.Clone(item.Causes), // which are the queue's, and go with the run
	}
}

func (f *failures[K]) succeeded(key K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, key)
}

func (f *failures[K]) list() (all []Failing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, failing := range f.keys {
		all = append(all, failing)
	}
	return all
}
