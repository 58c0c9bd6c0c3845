package reconcile

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile/internal/forbidden"
	"github.com/flyball-dev/flyball/workqueue"
	"github.com/flyball-dev/flyball/writes"
)

// runWorker reconciles one key after another until intake is done. Keys that are still ready then stay in the queue.
func (c *engine[K]) runWorker(intake, work context.Context) {
	item, err := c.queue.Get(intake)
	defer func() {
		if err == nil { // The reconciler called runtime.Goexit, as t.FailNow does.
			c.queue.Done(item.Key)
		}
	}()
	for err == nil {
		c.processNextWorkItem(work, &item)
		err = c.queue.Next(intake, &item) // This is Done for the key, and Get for the next one, under one lock.
	}
}

// processNextWorkItem reconciles a key that a worker has taken from the queue, and decides what happens to it. The
// worker calls Done afterwards, whatever the outcome; until then, an add of the key only marks it as dirty. In
// AddOptions, RateLimited adds the key after its backoff, and Requeue makes After a delay that is cancelled if an event
// queues the key earlier.
func (c *engine[K]) processNextWorkItem(work context.Context, item *workqueue.Item[K]) {
	// The checks before the reconcile begin the run, or delay a key that must not run yet.
	r := c.checkBefore(work, item)
	if r == nil {
		return
	}
	defer c.endRun(r.entry)
	result, err := c.syncHandler(r)
	how := c.outcomeOf(r, result, err)
	// The checks after the reconcile record failures, missing permissions and wrong caches, for Health and for later
	// runs.
	denied := c.checkAfter(r, how, result, err)

	c.outcomes[how].Add(1)
	key, priority := item.Key, cmp.Or(result.Priority, &item.Priority)
	switch how {
	case succeeded:
		if item.Attempt > 0 { // Otherwise there is no failure to forget, and Forget takes locks.
			c.queue.Forget(key)
		}
	case requeueAfter:
		if item.Attempt > 0 {
			c.queue.Forget(key)
		}
		c.queue.AddWith(key, workqueue.AddOptions{
			After: result.RequeueAfter, Requeue: true, Priority: priority, Cause: c.cause(whyRequeue),
		})
	case requeue:
		c.queue.AddWith(key, workqueue.AddOptions{RateLimited: true, Priority: priority, Cause: c.cause(whyRequeue)})
	case terminal:
		c.logger(r, err).Error(err, "Reconcile failed with a terminal error; not retrying")
		c.queue.Forget(key)
	case stale: // This is no failure, so the backoff stays as it is.
		delay := staleDelay(err)
		c.logStale(r, err, delay)
		c.queue.AddWith(key, workqueue.AddOptions{
			After: delay, Requeue: true, Priority: &item.Priority, Cause: c.cause(WhyStale),
		})
	case retry:
		c.logRetry(r, result, err, denied)
		c.queue.AddWith(key, workqueue.AddOptions{RateLimited: true, Priority: priority, Cause: c.cause(WhyRetry)})
		if denied.Probe { // The probe tries again soon, whatever its backoff is, to see whether it may now.
			c.queue.AddWith(key, workqueue.AddOptions{
				After: forbidden.ProbeEvery, Requeue: true, Earliest: true, Priority: priority,
			})
		}
	case givenUp:
		c.logger(r, err).Error(err, "Reconcile failed; giving up until the key is added again",
			"retries", c.queue.NumRequeues(key))
		c.queue.Forget(key)
	case cancelled: // The process ends, and the next one reconciles all keys.
	}
}

// syncHandler calls the reconciler with a context that carries a logger, the causes and the timeout. A panic becomes a
// [PanicError]. No other function of this package recovers from panics.
func (c *engine[K]) syncHandler(r *run[K]) (result Result, err error) {
	key, ctx := r.item.Key, context.Context(r)
	if c.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.options.Timeout, errTimeout)
		defer cancel()
	}
	logs := klog.FromContext(r.Context).V(4).Enabled()
	if logs {
		klog.FromContext(r).V(4).Info("Reconcile", "attempt", r.item.Attempt, "queued", r.item.Queued,
			"causes", r.item.Causes)
	}
	defer func() {
		if value := recover(); value != nil {
			c.stats.Panics.Add(1)
			c.stats.Panicking.Add(1)
			result, err = Result{}, &PanicError{Value: value, Stack: debug.Stack()}
		}
		if c.options.Timeout > 0 && errors.Is(context.Cause(ctx), errTimeout) {
			c.stats.Timeouts.Add(1)
		}
		duration := time.Since(r.entry.run.Began)
		c.durations.Note(duration)
		if logs {
			klog.FromContext(r).V(4).Info("Reconciled", "duration", duration, "err", err)
		}
	}()
	if c.options.Ready != nil {
		if err := c.options.Ready(ctx, key); err != nil {
			return Result{}, err
		}
	}
	result, err = c.reconciler.Reconcile(ctx, key)
	c.stats.Panicking.Store(0)
	return result, err
}

// outcome is how a reconcile ended. [Reconciler] lists what each outcome means for the key.
type outcome int

const (
	succeeded outcome = iota
	requeueAfter
	requeue
	terminal
	stale // The cache was behind a write of this process.
	retry
	givenUp   // It failed more than Options.MaxRetries times in a row.
	cancelled // The process ends, and the reconciler returned the error of its context.
	outcomes  // the number of outcomes
)

func (c *engine[K]) outcomeOf(r *run[K], result Result, err error) outcome {
	switch {
	case err == nil && result.RequeueAfter > 0:
		return requeueAfter
	case err == nil && result.Requeue:
		return requeue
	case err == nil:
		return succeeded
	case r.Context.Err() != nil && errors.Is(err, context.Canceled):
		return cancelled
	case errors.Is(err, writes.ErrStale):
		return stale
	case IsTerminal(err):
		return terminal
	case c.options.MaxRetries > 0 && c.queue.NumRequeues(r.item.Key) >= c.options.MaxRetries:
		return givenUp
	}
	return retry
}

// String returns the outcome as traces show it.
func (o outcome) String() string {
	return [...]string{"done", "done", "done", "given up", "stale", "retry", "given up", "cancelled"}[o]
}

// staleDelay returns how long a key waits for the cache, unless an event queues it earlier.
func staleDelay(err error) time.Duration {
	if behind := (*writes.StaleError)(nil); errors.As(err, &behind) {
		return max(staleRetry, behind.RetryAfter)
	}
	return staleRetry
}

func (c *engine[K]) logStale(r *run[K], err error, delay time.Duration) {
	klog.FromContext(r.Context).V(4).Info("Reconcile is waiting for the cache",
		"key", r.item.Key, "delay", delay, "reason", err)
}

// logRetry logs a failure. A missing permission fails every key that needs it, so only the first one is logged as an
// error.
func (c *engine[K]) logRetry(r *run[K], result Result, err error, denied forbidden.Denial) {
	logger := c.logger(r, err)
	if result.RequeueAfter > 0 {
		logger = logger.WithValues("ignoredRequeueAfter", result.RequeueAfter)
	}
	switch {
	case denied.Permission == "":
		logger.Error(err, "Reconcile failed; retrying with backoff")
	case denied.First:
		logger.Error(err, "Reconcile is forbidden for all keys that need the permission; retrying with backoff")
	default:
		logger.V(4).Info("Reconcile is forbidden; retrying with backoff", "err", err)
	}
}

// logger returns the logger for the outcome of a failed run. It adds the stack of a panic.
func (c *engine[K]) logger(r *run[K], err error) klog.Logger {
	logger := klog.LoggerWithValues(klog.FromContext(r.Context), "key", r.item.Key, "attempt", r.item.Attempt)
	if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
		logger = logger.WithValues("stack", string(panicked.Stack))
	}
	return logger
}
