package reconcile

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/workqueue"
)

// processNextWorkItem takes one key, reconciles it and settles what becomes of it. It returns false when
// intake is done: the key that would have come next stays in the queue.
func (c *Controller[K]) processNextWorkItem(intake, work context.Context) bool {
	if intake.Err() != nil {
		return false
	}
	item, err := c.queue.Get(intake)
	if err != nil {
		return false
	}
	if wait := c.contradictions.wait(item.Key); wait > 0 {
		c.putOff(item, workqueue.AddOptions{After: wait, Cause: c.cause(WhyRetry)})
		return true
	}
	if wait := c.pace.admit(&item); wait > 0 {
		c.putOff(item, workqueue.AddOptions{After: wait})
		return true
	}
	now := time.Now()
	c.begin(item.Key, now)
	defer c.end(item.Key)
	result, err := c.syncHandler(c.watchRow(work, &item, now), item)
	c.settle(work, item, result, err)
	return true
}

// putOff gives back a key that may not run yet.
func (c *Controller[K]) putOff(item workqueue.Item[K], o workqueue.AddOptions) {
	c.stats.deferred.Add(1)
	o.Requeue, o.Priority = true, &item.Priority
	c.queue.AddWith(item.Key, o)
	c.queue.Done(item.Key)
}

func (c *Controller[K]) begin(key K, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight[key] = now
	c.peak = max(c.peak, len(c.inFlight))
}

// end gives the key back to the queue last: until then nobody else may have it.
func (c *Controller[K]) end(key K) {
	c.mu.Lock()
	delete(c.inFlight, key)
	_, discarded := c.discarded[key]
	delete(c.discarded, key)
	c.mu.Unlock()
	if discarded {
		c.forget(key)
	}
	c.stats.syncs.Add(1)
	c.queue.Done(key)
}

// syncHandler calls the reconciler with a context that carries a logger, the causes and the timeout. A
// panic comes back as a [PanicError]: here is the only place that recovers.
func (c *Controller[K]) syncHandler(ctx context.Context, item workqueue.Item[K]) (result Result, err error) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", c.name, "key", item.Key,
		"reconcileID", c.name+"-"+strconv.FormatUint(c.stats.started.Add(1), 10))
	contradicted := &atomic.Pointer[informer.ContradictionError]{}
	defer func() { c.contradictions.ran(item.Key, contradicted) }()
	ctx = context.WithValue(klog.NewContext(ctx, logger), runKey{},
		run{controller: c.name, key: item.Key, causes: item.Causes, contradicted: contradicted})
	ctx = client.WithOwner(ctx, Owner[K]{Controller: c.name, Key: item.Key})
	ctx = client.WithWaker(ctx, waker[K]{c.queue, item.Key})
	if c.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.options.Timeout, errTimeout)
		defer cancel()
	}
	start := time.Now()
	logger.V(4).Info("Reconcile", "attempt", item.Attempt, "queued", item.Queued, "causes", item.Causes)
	defer func() {
		if value := recover(); value != nil {
			c.stats.panics.Add(1)
			c.stats.panicking.Add(1)
			result, err = Result{}, &PanicError{Value: value, Stack: debug.Stack()}
		}
		if errors.Is(context.Cause(ctx), errTimeout) {
			c.stats.timeouts.Add(1)
		}
		c.observe(time.Since(start))
		logger.V(4).Info("Reconciled", "duration", time.Since(start), "err", err)
	}()
	if c.options.Ready != nil {
		if err := c.options.Ready(ctx, item.Key); err != nil {
			return Result{}, err
		}
	}
	result, err = c.reconciler.Reconcile(ctx, item.Key)
	c.stats.panicking.Store(0)
	return result, err
}

// settle decides what becomes of a key; [Reconciler] has the rules.
func (c *Controller[K]) settle(work context.Context, item workqueue.Item[K], result Result, err error) {
	key := item.Key
	if err == nil {
		c.recovered(key)
		c.allowed(work, key, "")
		c.failures.succeeded(key)
		if result.RequeueAfter <= 0 {
			c.stats.done.Add(1)
		} else {
			c.stats.requeues.Add(1)
			c.queue.AddWith(key, workqueue.AddOptions{
				After: result.RequeueAfter, Requeue: true, Priority: result.priority(item.Priority),
				Cause: c.cause(whyRequeue),
			})
		}
		return
	}
	if work.Err() != nil && errors.Is(err, context.Canceled) {
		return // the process ends, the reconcile did not fail
	}
	if errors.Is(err, client.ErrStale) {
		c.again(work, item, err)
		return
	}
	c.stats.errors.Add(1)
	permission := lacking(err)
	c.allowed(work, key, permission)
	logger := klog.LoggerWithValues(klog.FromContext(work), "controller", c.name, "key", key, "attempt", item.Attempt)
	var panicked *PanicError
	if errors.As(err, &panicked) {
		logger = logger.WithValues("stack", string(panicked.Stack))
	}
	switch retries := c.queue.NumRequeues(key); {
	case IsTerminal(err):
		c.stats.terminal.Add(1)
		logger.Error(err, "Reconcile failed and is not retried: the error is terminal")
		c.failures.failed(item, err, true)
		c.drop(work, key)
	case c.options.MaxRetries > 0 && retries >= c.options.MaxRetries:
		logger.Error(err, "Reconcile failed and is given up until the key is added anew", "retries", retries)
		c.failures.failed(item, err, true)
		c.drop(work, key)
	default:
		if result.RequeueAfter > 0 {
			logger = logger.WithValues("ignored", result.RequeueAfter)
		}
		c.retry(logger, item, result, err, permission)
	}
}

// again puts a key back whose reconcile found the cache behind a write of this process. That is no failure: the backoff
// stays as it is, and the next event runs the key at once.
func (c *Controller[K]) again(work context.Context, item workqueue.Item[K], err error) {
	c.stats.stale.Add(1)
	wait := staleRetry
	if stale := (*client.StaleError)(nil); errors.As(err, &stale) {
		wait = max(wait, stale.RetryAfter)
	}
	klog.FromContext(work).V(4).Info("Reconcile waits for the cache", "controller", c.name, "key", item.Key, "delay", wait, "reason", err)
	c.queue.AddWith(item.Key, workqueue.AddOptions{
		After: wait, Requeue: true, Priority: &item.Priority,
		Cause: c.cause(WhyStale),
	})
}

func (c *Controller[K]) drop(work context.Context, key K) {
	c.stats.dropped.Add(1)
	c.recovered(key)
	c.allowed(work, key, "")
}

// recovered forgets that key failed.
func (c *Controller[K]) recovered(key K) {
	c.queue.Forget(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failing, key)
}

// fails remembers since when key does.
func (c *Controller[K]) fails(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, before := c.failing[key]; !before {
		c.failing[key] = time.Now()
	}
}
