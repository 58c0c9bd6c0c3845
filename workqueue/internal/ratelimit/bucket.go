package ratelimit

import (
	"time"

	"golang.org/x/time/rate"
)

// Bucket limits the retries of all keys together by one token bucket. It keeps no state per key.
//
// Each retry reserves the next free token. Without a bound, a burst of n retries would reserve the tokens of the next
// n/Rate seconds, and a key that fails much later would still wait behind the whole burst. So a reservation farther
// ahead than MaxDelay is cancelled, and the key waits MaxDelay.
type Bucket[K comparable] struct {
	Limiter  *rate.Limiter
	MaxDelay time.Duration
}

// When reserves a token and returns how long to wait for it.
func (l *Bucket[K]) When(K) time.Duration {
	now := time.Now()
	reservation := l.Limiter.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > l.MaxDelay {
		reservation.CancelAt(now)
		return l.MaxDelay
	}
	return delay
}

// Forget does nothing: a bucket has no state per key.
func (l *Bucket[K]) Forget(K) {}

// NumRequeues returns 0: a bucket has no state per key.
func (l *Bucket[K]) NumRequeues(K) int { return 0 }
