package reconcile

import (
	"maps"
	"slices"
)

func (c *engine[K]) Forget(key K) {
	c.mu.Lock()
	e := c.keys.find(key)
	runs := e != nil && e.place != none
	if runs {
		e.forgotten = true // endRun forgets the key.
	}
	c.mu.Unlock()
	if !runs {
		c.forget(key)
	}
}

func (c *engine[K]) ForgetFunc(match func(key K) bool) {
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.keys.entries))
	for _, e := range c.keys.running {
		keys = append(keys, e.key)
	}
	c.mu.Unlock()
	for _, key := range keys {
		if match(key) {
			c.Forget(key)
		}
	}
	// Cancel the delays last, to catch the delay of a run that ended before its key could be marked as forgotten. A run
	// that is still in flight is marked, so endRun cancels its delay.
	c.queue.CancelDelays(slices.DeleteFunc(c.queue.Delayed(), func(key K) bool { return !match(key) })...)
}

// forget drops what the queue and the controller know about a key that no worker has.
func (c *engine[K]) forget(key K) {
	c.queue.CancelRequeue(key)
	c.queue.Forget(key)
	c.mu.Lock()
	e := c.keys.entries[key]
	if e == nil || e.place != none { // A worker has taken the key again.
		c.mu.Unlock()
		return
	}
	_, others, _ := c.checks.forbidden.Update(key, e.permission, "")
	c.keys.fail(e, nil)
	delete(c.keys.entries, key)
	c.mu.Unlock()
	c.retryForbidden(others)
}
