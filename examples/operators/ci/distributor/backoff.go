package distributor

import (
	"sync"

	"github.com/flyball-dev/flyball/workqueue"
)

// backoff is the controller's rate limiter. A reconcile that requests an import returns no error, after which the loop
// forgets a key's failures. But the import has not succeeded until it is answered. So this limiter keeps the failures
// while an import is under way, and a registry that fails is asked less and less often.
type backoff struct {
	workqueue.RateLimiter[Key]

	mu sync.Mutex
	// underWay holds the keys that wait for the answer to an import.
	underWay map[Key]bool
}

func newBackoff() *backoff {
	return &backoff{RateLimiter: workqueue.DefaultControllerRateLimiter[Key](), underWay: map[Key]bool{}}
}

// set records whether an import of the key is under way.
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
