package workqueue

import (
	"math/rand/v2"
	"time"
)

// ExponentialOptions configures an [ExponentialRateLimiter].
type ExponentialOptions struct {
	// Base is the wait after the first failure. Zero means 5 ms.
	Base time.Duration
	// Max bounds every wait, jitter included. Zero means 1000 s.
	Max time.Duration
	// Jitter lengthens each wait by a random fraction between 0 and Jitter, so that keys that failed together are not
	// retried together. Zero means no jitter.
	Jitter float64
	// Random returns numbers in [0, 1) for the jitter. Nil means math/rand/v2. It must be safe for concurrent use.
	Random func() float64
}

// ExponentialRateLimiter doubles a key's wait with every failure.
type ExponentialRateLimiter[K comparable] struct {
	failures[K]
	o ExponentialOptions
}

// NewExponentialRateLimiter returns a limiter that waits Base·2ⁿ after n earlier failures, and at most Max.
func NewExponentialRateLimiter[K comparable](o ExponentialOptions) *ExponentialRateLimiter[K] {
	if o.Base == 0 {
		o.Base = 5 * time.Millisecond
	}
	if o.Max == 0 {
		o.Max = 1000 * time.Second
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &ExponentialRateLimiter[K]{o: o}
}

// When counts a failure and returns the wait.
func (l *ExponentialRateLimiter[K]) When(key K) time.Duration {
	wait := l.backoff(l.count(key))
	if l.o.Jitter <= 0 {
		return wait
	}
	jittered := float64(wait) * (1 + l.o.Jitter*l.o.Random())
	if jittered >= float64(l.o.Max) {
		return l.o.Max
	}
	return time.Duration(jittered)
}

// backoff doubles Base n times, up to Max. It compares with Max before each step rather than after, so that no step can
// overflow.
func (l *ExponentialRateLimiter[K]) backoff(n int) time.Duration {
	wait := l.o.Base
	for ; n > 0 && wait < l.o.Max; n-- {
		if wait > l.o.Max/2 {
			return l.o.Max
		}
		wait *= 2
	}
	return min(wait, l.o.Max)
}
