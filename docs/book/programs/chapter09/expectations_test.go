package chapter09

import (
	"sync"
	"time"

	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// giveUpAfter is how long expectations are believed.
const giveUpAfter = 5 * time.Minute

// expectations counts the creates and deletes whose events have not come yet, for one owner.
type expectations struct {
	mu            sync.Mutex
	adds, deletes int
	since         time.Time
}

// expect is called before the writes: an event may come before the write has returned.
func (e *expectations) expect(adds, deletes int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.adds, e.deletes, e.since = adds, deletes, time.Now()
}

// seen is called for every event.
func (e *expectations) seen(event predicate.EventType) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch event {
	case predicate.Add:
		e.adds--
	case predicate.Delete:
		e.deletes--
	}
}

// failed is called when creates have failed: no event will come for them.
func (e *expectations) failed(creates int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.adds -= creates
}

// fulfilled reports whether the cache has everything that was written, as far as can be told.
func (e *expectations) fulfilled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.adds <= 0 && e.deletes <= 0 || time.Since(e.since) > giveUpAfter
}
