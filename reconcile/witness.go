package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	// maxSights bounds what a [witness] remembers. Keys beyond run again at once, rather than perhaps never.
	maxSights = 10_000
	// sightTimeout is how long it waits. A cache that has not come as far by then may never (the server's history went
	// back): the key runs again.
	sightTimeout = 10 * time.Minute
)

// witness waits for the caches to show what reconciles created, and runs the key again whose object was deleted by others
// before any cache had it. Of that no event tells: it is the one change that level-triggering cannot see.
type witness[K comparable] struct {
	queue *workqueue.Queue[K]

	mu sync.Mutex
	// sights are what was created and not seen yet, oldest first.
	sights []sight[K]
	// more has an element when sights may not be empty. Sent to by add, received by run, never closed; capacity 1: a
	// second wake-up would say nothing new.
	more chan struct{}
}

// sight is one object that the reconcile of key created.
type sight[K comparable] struct {
	key     K
	created client.Created
	until   time.Time
}

func newWitness[K comparable](q *workqueue.Queue[K]) *witness[K] {
	return &witness[K]{queue: q, more: make(chan struct{}, 1)}
}

// add begins to wait for created.
func (w *witness[K]) add(key K, created client.Created) {
	w.mu.Lock()
	full := len(w.sights) >= maxSights
	if !full {
		w.sights = append(w.sights, sight[K]{key, created, time.Now().Add(sightTimeout)})
	}
	w.mu.Unlock()
	if full {
		w.again(key, created)
		return
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// again queues a key because of what became, or may have become, of created.
func (w *witness[K]) again(key K, created client.Created) {
	w.queue.AddWithCause(key, workqueue.Cause{Source: created.Resource(), Event: "Vanished", Object: created.Key().String(), Time: time.Now()})
}

// run looks at one after the other until ctx is done: caches show things in the order in which they were created, so there is
// little to gain from more goroutines.
func (w *witness[K]) run(ctx context.Context) {
	for {
		w.mu.Lock()
		sights := w.sights
		w.sights = nil
		w.mu.Unlock()
		for _, s := range sights {
			wait, cancel := context.WithDeadline(ctx, s.until)
			vanished, err := s.created.Vanished(wait)
			cancel()
			if ctx.Err() != nil {
				return
			}
			if vanished || err != nil { // An error says that the cache may never tell.
				w.again(s.key, s.created)
			}
		}
		select {
		case <-w.more:
		case <-ctx.Done():
			return
		}
	}
}
