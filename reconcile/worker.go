package reconcile

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/reconcile/internal/forbidden"
	"github.com/flyball-dev/flyball/workqueue"
)

// runWorker takes one key after the other until intake is done: the key that would have come next stays in the queue.
func (c *engine[K]) runWorker(intake, work context.Context) {
	item, err := c.queue.Get(intake)
	for err == nil {
		c.processNextWorkItem(work, &item)
		done := item.Key
		item = workqueue.Item[K]{} // A worker that waits keeps nothing alive that its last key refers to.
		item, err = c.queue.Next(intake, done)
	}
}

// processNextWorkItem reconciles one key, and settles what becomes of it.
func (c *engine[K]) processNextWorkItem(work context.Context, item *workqueue.Item[K]) {
	r, ok := c.admitted(work, item)
	if !ok {
		return
	}
	settled := false
	defer func() {
		c.stats.Syncs.Add(1)
		c.over(r.entry)
		if !settled { // The reconciler called runtime.Goexit, as a test does that fails.
			c.queue.Done(r.item.Key)
		}
	}()
	result, err := c.syncHandler(r)
	c.settle(r, result, err)
	settled = true
}

// over notes that the worker is about to give the key back to the queue. Until then nobody else may have it.
func (c *engine[K]) over(e *entry[K]) {
	c.mu.Lock()
	key, forgotten := e.key, e.forgotten
	c.keys.end(e)
	c.mu.Unlock()
	if forgotten {
		c.forgotten(key)
	}
}

// syncHandler calls the reconciler with a context that carries a logger, the causes and the timeout. A
// panic comes back as a [PanicError]: here is the only place that recovers.
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
		took := time.Since(r.entry.run.Began)
		c.took.Note(took)
		if logs {
			klog.FromContext(r).V(4).Info("Reconciled", "duration", took, "err", err)
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

// settle decides what becomes of a key; [Reconciler] has the rules.
func (c *engine[K]) settle(r *run[K], result Result, err error) {
	how := c.judge(r, err)
	note := c.settled(r, how, err)
	if c.trace != nil {
		c.trace.Ended(r.began, c.Subject(r.item.Key), how.String(), err, result.RequeueAfter, r.entry.run.Began)
	}
	switch how {
	case stale:
		c.again(r, err)
	case succeeded:
		backoff := result.Requeue && result.RequeueAfter <= 0
		if r.item.Attempt > 0 && !backoff {
			c.queue.Forget(r.item.Key)
		}
		if result.RequeueAfter <= 0 && !backoff {
			c.stats.Done.Add(1)
			return
		}
		c.stats.Requeues.Add(1)
		c.queue.AddWith(r.item.Key, workqueue.AddOptions{
			After: max(result.RequeueAfter, 0), Requeue: !backoff, RateLimited: backoff,
			Priority: result.priority(r.item.Priority), Cause: c.cause(whyRequeue),
		})
	case givenUp:
		c.stats.Dropped.Add(1)
		c.queue.Forget(r.item.Key)
	case retried:
		c.retry(r, result, err, note)
	}
}

// judge returns how a reconcile ended, counts errors, and logs those after which the key is given up.
func (c *engine[K]) judge(r *run[K], err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case r.Context.Err() != nil && errors.Is(err, context.Canceled):
		return cancelled // the process ends, the reconcile did not fail
	case errors.Is(err, client.ErrStale):
		return stale
	}
	c.stats.Errors.Add(1)
	retries := c.queue.NumRequeues(r.item.Key)
	switch {
	case IsTerminal(err):
		c.stats.Terminal.Add(1)
		c.logger(r, err).Error(err, "Reconcile failed with a terminal error; not retrying")
		return givenUp
	case c.options.MaxRetries > 0 && retries >= c.options.MaxRetries:
		c.logger(r, err).Error(err, "Reconcile failed; giving up until the key is added again", "retries", retries)
		return givenUp
	}
	return retried
}

// logger is for what became of a run.
func (c *engine[K]) logger(r *run[K], err error) klog.Logger {
	logger := klog.LoggerWithValues(klog.FromContext(r.Context), "key", r.item.Key, "attempt", r.item.Attempt)
	if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
		logger = logger.WithValues("stack", string(panicked.Stack))
	}
	return logger
}

// again puts a key back whose reconcile found the cache behind a write of this process. That is no failure: the backoff
// stays as it is, and the next event runs the key at once.
func (c *engine[K]) again(r *run[K], err error) {
	c.stats.Stale.Add(1)
	wait := staleRetry
	if behind := (*client.StaleError)(nil); errors.As(err, &behind) {
		wait = max(wait, behind.RetryAfter)
	}
	klog.FromContext(r.Context).V(4).Info("Reconcile is waiting for the cache",
		"key", r.item.Key, "delay", wait, "reason", err)
	c.queue.AddWith(r.item.Key, workqueue.AddOptions{
		After: wait, Requeue: true, Priority: &r.item.Priority, Cause: c.cause(WhyStale),
	})
}

// retry puts a key back that failed. What the API server forbids for want of a permission is logged once for all keys.
func (c *engine[K]) retry(r *run[K], result Result, err error, n note) {
	logger := c.logger(r, err)
	if result.RequeueAfter > 0 {
		logger = logger.WithValues("ignored", result.RequeueAfter)
	}
	switch {
	case n.permission == "":
		logger.Error(err, "Reconcile failed; retrying with backoff")
	case n.first:
		logger.Error(err, "Reconcile is forbidden for all keys that need the permission; retrying with backoff")
	default:
		logger.V(4).Info("Reconcile is forbidden; retrying with backoff", "err", err)
	}
	c.stats.Retries.Add(1)
	o := workqueue.AddOptions{RateLimited: true, Priority: result.priority(r.item.Priority), Cause: c.cause(WhyRetry)}
	c.queue.AddWith(r.item.Key, o)
	if n.probe {
		o.RateLimited, o.After, o.Requeue, o.Earliest = false, forbidden.ProbeEvery, true, true
		c.queue.AddWith(r.item.Key, o)
	}
}
