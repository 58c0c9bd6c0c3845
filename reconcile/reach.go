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

// Discard forgets the keys that match: their delays, failures and backoff. Those that are queued are handed to the reconciler once
// more, which should do nothing for them; call it when none of them is in flight.
func (c *Controller[K]) Discard(match func(key K) bool) {
	c.queue.DropDelays(match)
	c.mu.Lock()
	var failing []K
	for key := range c.failing {
		if match(key) {
			delete(c.failing, key)
			failing = append(failing, key)
		}
	}
	c.mu.Unlock()
	for _, key := range failing {
		c.queue.Forget(key)
		_, others, _ := c.refusals.settled(key, "")
		c.askAgain(others)
	}
	c.failures.discard(match)
}

func (f *failures[K]) discard(match func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.keys, func(key K, _ Failing) bool { return match(key) })
}
