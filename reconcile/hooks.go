package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/loop"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/reconcile/internal/deadline"
	"github.com/flyball-dev/flyball/reconcile/internal/debounce"
	"github.com/flyball-dev/flyball/reconcile/internal/forbidden"
	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
	"github.com/flyball-dev/flyball/workqueue"
)

// rooms are what stands beside the loop. The loop calls them at three moments, the hooks: admitted, settled and
// forgotten. What a room knows of one key is in the key's entry.
type rooms[K comparable] struct {
	deadlines *deadline.Watch
	forbidden forbidden.Permissions[K]
	hotloop   *hotloop.Detector[K]
	// outer is that of package multicluster.
	outer loop.Settings[K]
}

// admitted is the first hook: a worker has taken a key. It reports whether the key is to be reconciled now. If not,
// it was put off.
func (c *engine[K]) admitted(work context.Context, item *workqueue.Item[K]) (*run[K], bool) {
	if admit := c.rooms.outer.Admitted; admit != nil && !admit(item.Key) {
		return nil, false
	}
	now := time.Now()
	c.mu.Lock()
	e := c.keys.begin(item.Key, now)
	c.rooms.deadlines.Begin(now)
	c.mu.Unlock()
	if wait, cause := c.wait(e, item, now); wait > 0 {
		c.stats.Deferred.Add(1)
		c.queue.AddWith(item.Key,
			workqueue.AddOptions{After: wait, Requeue: true, Priority: &item.Priority, Cause: cause})
		c.over(e)
		return nil, false
	}
	r := &run[K]{controller: c, entry: e, item: *item, number: c.stats.Started.Add(1)}
	if c.trace != nil {
		r.began = c.trace.Began(c.Subject(item.Key), r.number, item.Attempt, item.Queued,
			trace.Causes(item.Causes), now)
	}
	ctx, found := c.rooms.hotloop.Begin(work, &r.item, now)
	if r.Context = ctx; found != nil {
		c.selfTriggered(work, found)
	}
	return r, true
}

// wait returns how long a key that a worker has taken still has to wait, and the cause of that; zero if it may run now.
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

// selfTriggered reports a loop, and ends the controller if nothing else would.
func (c *engine[K]) selfTriggered(work context.Context, found *hotloop.Loop) {
	err := c.loopError(found)
	if !found.Endless {
		klog.FromContext(work).Error(err, "Reconcile triggers itself", "key", found.Key)
		return
	}
	c.stop(err)
}

// outcome is how a reconcile ended.
type outcome int

const (
	succeeded outcome = iota
	cancelled         // by the end of the process
	stale             // the cache was behind an own write
	retried
	givenUp
)

// String implements [fmt.Stringer].
func (o outcome) String() string {
	return [...]string{"done", "cancelled", "stale", "retry", "given up"}[o]
}

// note is what settled has to say about a key that is retried.
type note struct {
	// permission is what the key lacks; first: no other key did; probe: the key is to try again soon.
	permission   string
	first, probe bool
}

// settled is the second hook: a reconcile ended, and the key does not run again before it returns.
func (c *engine[K]) settled(r *run[K], how outcome, err error) (n note) {
	e, why := r.entry, r.contradicted.Load()
	known := e.contradiction
	if known != nil || why != nil {
		known = known.Next(why)
	} else if how == succeeded && e.well() {
		return n // Nothing changes, so the lock is not needed.
	}
	var failure *Failing
	if how == retried || how == givenUp {
		failure = &Failing{
			Key: fmt.Sprint(e.key), Err: err, Attempts: 1, GivenUp: how == givenUp,
			Causes: slices.Clone(r.item.Causes), // which are the queue's, and go with the run
		}
	}
	if how == retried {
		n.permission = forbidden.Lacking(err)
	}
	c.mu.Lock()
	e.contradiction = known
	if how == cancelled || how == stale {
		c.mu.Unlock()
		return n
	}
	c.keys.fail(e, failure)
	switch {
	case how != retried:
		e.failing = time.Time{}
	case e.failing.IsZero():
		e.failing = time.Now()
	}
	permission := e.permission
	others, lasted := c.permitLocked(e, n.permission)
	if n.permission != "" {
		n.first, n.probe = c.rooms.forbidden.Add(e.key, n.permission)
		e.permission = n.permission
	}
	c.mu.Unlock()
	c.askAgain(others)
	if lasted > 0 {
		klog.FromContext(r.Context).Info("Reconciles are no longer forbidden",
			"permission", permission, "duration", lasted)
	}
	return n
}

// permitLocked notes that a key does not lack the permission any more that it lacked, unless it is still.
func (c *engine[K]) permitLocked(e *entry[K], still string) (others []K, lasted time.Duration) {
	if e.permission == "" || e.permission == still {
		return nil, 0
	}
	others, lasted = c.rooms.forbidden.Remove(e.key, e.permission)
	e.permission = ""
	return others, lasted
}

// askAgain has keys try whether they are still forbidden what they were.
func (c *engine[K]) askAgain(keys []K) {
	for _, key := range keys {
		c.queue.AddWith(key, workqueue.AddOptions{Cause: c.cause(WhyRetry)})
	}
}

// forgotten is the third hook: the key is not the controller's any more. No worker has it.
func (c *engine[K]) forgotten(key K) {
	c.queue.CancelRequeue(key)
	c.queue.Forget(key)
	c.mu.Lock()
	e := c.keys.entries[key]
	if e == nil || e.place != none {
		c.mu.Unlock()
		return
	}
	others, _ := c.permitLocked(e, "")
	c.keys.fail(e, nil)
	delete(c.keys.entries, key)
	c.mu.Unlock()
	c.askAgain(others)
}
