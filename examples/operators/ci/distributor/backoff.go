package distributor

import (
	"sync"

	"github.com/flyball-dev/flyball/workqueue"
)

// backoff is the controller's rate limiter. To ask for an import is a reconcile without an error, after which a key's failures
// are forgotten; but it has not succeeded before the answer has. So here they are kept while an import is under way: a registry
// that refuses is asked less and less often.
type backoff struct {
	workqueue.RateLimiter[Key]

	mu sync.Mutex
	// underWay are the keys that wait for the answer to an import.
	underWay map[Key]bool
}

func newBackoff() *backoff {
	return &backoff{RateLimiter: workqueue.DefaultControllerRateLimiter[Key](), underWay: map[Key]bool{}}
}

// set notes whether an import of the key is under way.
func (b *backoff) set(k Key, underWay bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if underWay {
		b.underWay[k] = true
	} else {
		delete(b.underWay, k)
	}
}

// Forget implements workqueue.RateLimiter.
func (b *backoff) Forget(k Key) {
	b.mu.Lock()
	keep := b.underWay[k]
	b.mu.Unlock()
	if !keep {
		b.RateLimiter.Forget(k)
	}
}
