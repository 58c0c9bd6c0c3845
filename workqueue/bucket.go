package workqueue

import (
	"time"

	"golang.org/x/time/rate"
)

// BucketOptions configures a [BucketRateLimiter].
type BucketOptions struct {
	// Rate is the number of tokens added to the bucket per second; each retry takes one. Zero means 10.
	Rate float64
	// Burst is the bucket's size. Zero means 100.
	Burst int
	// MaxDelay bounds how far ahead tokens are reserved; see [BucketRateLimiter]. Zero means one minute.
	MaxDelay time.Duration
}

// BucketRateLimiter limits the retries of all keys together by one token bucket. It keeps no state per key.
//
// Each retry reserves the next free token. Without a bound, a burst of n retries would reserve the tokens of the next
// n/Rate seconds, and a key that fails much later would still wait behind the whole burst. So a reservation farther
// ahead than MaxDelay is cancelled, and the key waits MaxDelay.
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

// When reserves a token and returns how long to wait for it.
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

// Forget does nothing: a bucket has no state per key.
func (l *BucketRateLimiter[K]) Forget(K) {}

// NumRequeues returns 0: a bucket has no state per key.
func (l *BucketRateLimiter[K]) NumRequeues(K) int { return 0 }
