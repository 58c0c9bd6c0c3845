package reconcile

import (
	"maps"

	"github.com/flyball-dev/flyball/workqueue"
)

// EnqueueWith queues key as o says, for a reason that is outside the sources: who feeds a controller by itself, with priorities
// say, uses it in the place of a [Source].
func (c *Controller[K]) EnqueueWith(key K, o workqueue.AddOptions) {
	c.stats.adds.Add(1)
	if o.After <= 0 && !o.RateLimited {
		c.pace.heard(key)
	}
	c.queue.AddWith(key, o)
}

// Rearrange calls change under the lock that guards Options.Order, and looks anew afterwards which keys may be reconciled; see
// [workqueue.Queue.Rearrange].
func (c *Controller[K]) Rearrange(change func()) { c.queue.Rearrange(change) }

// Discard forgets the keys that match: their delays, failures and backoff. Those in flight are forgotten when their run ends, whatever comes
// of it. Those that are queued are handed to the reconciler once more, which should do nothing for them but call [Controller.DiscardKey].
func (c *Controller[K]) Discard(match func(key K) bool) {
	var failing []K
	c.mu.Lock()
	for key := range c.inFlight { // first: what runs on after this is done with before it leaves
		if match(key) {
			c.discarded[key] = struct{}{}
		}
	}
	for key := range c.failing {
		if match(key) {
			failing = append(failing, key)
		}
	}
	c.mu.Unlock()
	c.queue.DropDelays(match)
	for _, key := range failing {
		c.forget(key)
	}
	c.failures.discard(match)
	c.contradictions.discard(match)
	c.pace.discard(match)
}

// DiscardKey is [Controller.Discard] of one key, which does not look at the others.
func (c *Controller[K]) DiscardKey(key K) {
	c.mu.Lock()
	_, runs := c.inFlight[key]
	if runs {
		c.discarded[key] = struct{}{}
	}
	c.mu.Unlock()
	if !runs {
		c.forget(key)
	}
}

// forget forgets what became of key's runs.
func (c *Controller[K]) forget(key K) {
	c.queue.DropRequeue(key)
	c.recovered(key)
	_, others, _ := c.refusals.settled(key, "")
	c.askAgain(others)
	c.failures.succeeded(key)
	c.pace.forget(key)
	c.contradictions.forget(key)
}

func (f *failures[K]) discard(match func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.keys, func(key K, _ Failing) bool { return match(key) })
}
