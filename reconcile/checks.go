package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
	"github.com/flyball-dev/flyball/reconcile/internal/deadline"
	"github.com/flyball-dev/flyball/reconcile/internal/debounce"
	"github.com/flyball-dev/flyball/reconcile/internal/forbidden"
	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
	"github.com/flyball-dev/flyball/workqueue"
)

// checks holds the state of the checks that concerns all keys. What a check knows about one key is in the key's entry.
type checks[K comparable] struct {
	deadlines *deadline.Watch
	forbidden forbidden.Permissions[K]
	hotloop   *hotloop.Detector[K]
}

// checkBefore begins the run of a key that a worker has taken. It returns nil if the key must not run now, because a
// check has delayed it or Options.Admit has refused it.
func (c *engine[K]) checkBefore(work context.Context, item *workqueue.Item[K]) *run[K] {
	if admit := c.options.Admit; admit != nil && !admit(item.Key) {
		return nil
	}
	now := time.Now()
	c.mu.Lock()
	e := c.keys.begin(item.Key, now)
	c.checks.deadlines.Begin(now)
	c.mu.Unlock()
	if wait, cause := c.wait(e, item, now); wait > 0 {
		c.stats.Deferred.Add(1)
		c.queue.AddWith(item.Key,
			workqueue.AddOptions{After: wait, Requeue: true, Priority: &item.Priority, Cause: cause})
		c.endRun(e)
		return nil
	}
	r := &run[K]{controller: c, entry: e, item: *item, number: c.stats.Started.Add(1)}
	if c.trace != nil {
		r.began = c.trace.Began(c.Subject(item.Key), r.number, item.Attempt, item.Queued,
			trace.Causes(item.Causes), now)
	}
	ctx, loop := c.checks.hotloop.Begin(work, &r.item, now)
	if r.Context = ctx; loop != nil {
		c.reportLoop(work, loop)
	}
	return r
}

// wait returns how long the key still has to wait, and the cause of that wait for the queue. It returns zero if the key
// may run now.
func (c *engine[K]) wait(e *entry[K], item *workqueue.Item[K], now time.Time) (time.Duration, workqueue.Cause) {
	if e.contradiction != nil {
		if wait := e.contradiction.Wait(); wait > 0 {
			return wait, c.cause(WhyRetry)
		}
	}
	if e.debounce == nil {
		return 0, workqueue.Cause{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return debounce.Admit(e.debounce, &c.keys.limits, item, now), workqueue.Cause{}
}

// reportLoop logs that a key triggers itself. If nothing else would end the loop, it ends the controller.
func (c *engine[K]) reportLoop(work context.Context, loop *hotloop.Loop) {
	err := c.loopError(loop)
	if !loop.Endless {
		klog.FromContext(work).Error(err, "Reconcile triggers itself", "key", loop.Key)
		return
	}
	c.stop(err)
}

// checkAfter records the end of a reconcile in the key's entry and in the trace.
func (c *engine[K]) checkAfter(r *run[K], how outcome, result Result, err error) (denied forbidden.Denial) {
	// Most reconciles end well and find nothing to clear in the entry. They need no lock.
	if contradicted := r.contradicted.Load(); err != nil || contradicted != nil || !r.entry.healthy() {
		denied = c.updateEntry(r, how, err, r.entry.contradiction.Next(contradicted))
	}
	if c.trace != nil {
		c.trace.Ended(r.began, c.Subject(r.item.Key), how.String(), err, result.RequeueAfter, r.entry.run.Began)
	}
	return denied
}

// updateEntry records what a reconcile shows about its key. A reconcile that was stale or cancelled shows nothing about
// its key.
func (c *engine[K]) updateEntry(r *run[K], how outcome, err error,
	known *contradiction.State,
) (denied forbidden.Denial) {
	e := r.entry
	if how == stale || how == cancelled {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.contradiction = known
		return denied
	}
	var failure *Failing
	if err != nil {
		failure = &Failing{
			Key: fmt.Sprint(e.key), Err: err, Attempts: 1, GivenUp: how != retry,
			Causes: slices.Clone(r.item.Causes), // The queue reuses its slice after Done.
		}
	}
	missing := ""
	if how == retry {
		missing = forbidden.Missing(err)
	}
	c.mu.Lock()
	e.contradiction = known
	c.keys.fail(e, failure)
	switch {
	case how != retry:
		e.failing = time.Time{}
	case e.failing.IsZero():
		e.failing = time.Now()
	}
	before := e.permission
	e.permission = missing
	denied, others, lasted := c.checks.forbidden.Update(e.key, before, missing)
	c.mu.Unlock()
	c.retryForbidden(others)
	if lasted > 0 {
		klog.FromContext(r.Context).Info("Reconciles are no longer forbidden",
			"permission", before, "duration", lasted)
	}
	return denied
}

// retryForbidden queues keys whose missing permission may have been granted.
func (c *engine[K]) retryForbidden(keys []K) {
	for _, key := range keys {
		c.queue.AddWith(key, workqueue.AddOptions{Cause: c.cause(WhyRetry)})
	}
}

// endRun ends the run of a key. The worker calls Done for the key after this, never before. If the key was forgotten
// during the run, endRun forgets it again, because the run may have recorded something since.
func (c *engine[K]) endRun(e *entry[K]) {
	c.mu.Lock()
	key, forgotten := e.key, e.forgotten
	c.keys.end(e)
	c.mu.Unlock()
	if forgotten {
		c.forget(key)
	}
}
