package workqueue

import (
	"time"

	"golang.org/x/time/rate"
)

// BucketOptions configures a [BucketRateLimiter].
type BucketOptions struct {
	// Rate is the number of retries per second that the bucket refills. Zero means 10.
	Rate float64
	// Burst is the bucket's size. Zero means 100.
	Burst int
	// MaxDelay bounds how far ahead the bucket may be booked; see [BucketRateLimiter]. Zero means a minute.
	MaxDelay time.Duration
}

// BucketRateLimiter limits retries over all keys together: one token bucket, no memory of keys.
//
// Each retry books the next free token. Without a bound, a storm of n retries books the bucket n/Rate seconds ahead, and
// a key that fails long after still waits behind the whole storm. So a booking farther ahead than MaxDelay is
// handed back, and the key waits MaxDelay.
type BucketRateLimiter[K comparable] struct {
	limiter  *rate.Limiter
	maxDelay time.Duration
}

// NewBucketRateLimiter returns a limiter with a full bucket.
func NewBucketRateLimiter[K comparable](o BucketOptions) *BucketRateLimiter[K] {
	if o.Rate == 0 {
		o.Rate = 10
	}
	if o.Burst == 0 {
		o.Burst = 100
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = time.Minute
	}
	return &BucketRateLimiter[K]{limiter: rate.NewLimiter(rate.Limit(o.Rate), o.Burst), maxDelay: o.MaxDelay}
}

// When books a token and returns the wait for it.
func (l *BucketRateLimiter[K]) When(K) time.Duration {
	now := time.Now()
	booking := l.limiter.ReserveN(now, 1)
	delay := booking.DelayFrom(now)
	if delay > l.maxDelay {
		booking.CancelAt(now)
		return l.maxDelay
	}
	return delay
}

// Forget does nothing: a bucket remembers no keys.
func (l *BucketRateLimiter[K]) Forget(K) {}

// NumRequeues returns 0: a bucket remembers no keys.
func (l *BucketRateLimiter[K]) NumRequeues(K) int { return 0 }
