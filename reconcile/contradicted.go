package reconcile

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/informer"
)

const (
	// contradictedRuns is how many reconciles of a key the server must contradict before the key is held back.
	contradictedRuns = 2
	// A key is held back for contradictedMin then, and for twice as long each time, up to contradictedMax.
	contradictedMin = time.Second
	contradictedMax = time.Minute
)

// Contradicted notes that a write of the reconcile that ctx belongs to was refused because the server does not have an object that a
// cache holds. The clients of a manager call it. Outside a reconcile it does nothing.
func Contradicted(ctx context.Context, why *informer.ContradictionError) {
	if r, ok := ctx.Value(runKey{}).(run); ok {
		r.contradicted.Store(why)
	}
}

// contradictions hold keys back whose writes the server contradicts again and again. Their cache is wrong, and each such reconcile may have
// made something that others undo: the events of that would run the key again at once, whatever the backoff of its failures
// is. The delay of a key ends early when the cache no longer holds the object.
type contradictions[K comparable] struct {
	mu sync.Mutex
	// keys has those that were contradicted and may be again: one of their reconciles that wrote nothing says little.
	keys map[K]*contradiction
}

// contradiction is what is known of one key.
type contradiction struct {
	why  *informer.ContradictionError
	runs int // that were contradicted
	// since is when the first of them ended, last when the last did, until when the next may begin.
	since, last, until time.Time
}

// stands reports whether the key may be contradicted again: the cache holds the object, and the last time was not long ago.
func (c *contradiction) stands() bool {
	return c.why.Stands() && (time.Since(c.last) < contradictedMax || time.Until(c.until) > 0)
}

// ran notes how a reconcile ended: with a contradiction, or, when there is none, without one.
func (c *contradictions[K]) ran(key K, contradicted *atomic.Pointer[informer.ContradictionError]) {
	why := contradicted.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.keys[key]
	if known != nil && !known.stands() {
		delete(c.keys, key)
		known = nil
	}
	if why == nil {
		return
	}
	if known == nil {
		known = &contradiction{since: time.Now()}
		if c.keys == nil {
			c.keys = map[K]*contradiction{}
		}
		c.keys[key] = known
	}
	known.last = time.Now()
	known.why = why
	if known.runs++; known.runs >= contradictedRuns {
		delay := contradictedMin << min(known.runs-contradictedRuns, 10)
		known.until = time.Now().Add(min(delay, contradictedMax))
	}
}

// wait returns how long the key still has to wait.
func (c *contradictions[K]) wait(key K) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.keys[key]
	if known == nil {
		return 0
	}
	if !known.stands() {
		delete(c.keys, key)
		return 0
	}
	return time.Until(known.until)
}

// forget forgets a key.
func (c *contradictions[K]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, key)
}

// discard forgets the keys that match.
func (c *contradictions[K]) discard(match func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.keys, func(key K, _ *contradiction) bool { return match(key) })
}

// complaints says which keys are held back.
func (c *contradictions[K]) complaints(name string) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := map[K]time.Time{}
	for key, known := range c.keys {
		switch {
		case !known.stands():
			delete(c.keys, key)
		case known.runs >= contradictedRuns:
			times[key] = known.since
		}
	}
	if len(times) == 0 {
		return nil
	}
	held := longer(times, 0)
	return []error{fmt.Errorf("%s: %s: %w", name, describe(held, "contradicted by the server"), c.keys[held[0].key].why)}
}
