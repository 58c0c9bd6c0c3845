package workqueue

import "time"

// FastSlowOptions configures a [FastSlowRateLimiter].
type FastSlowOptions struct {
	// Fast is the wait after each of the first Attempts failures, Slow the wait after all later ones.
	Fast, Slow time.Duration
	// Attempts is the number of fast retries.
	Attempts int
}

// FastSlowRateLimiter retries quickly a few times, then slowly.
type FastSlowRateLimiter[K comparable] struct {
	failures[K]
	o FastSlowOptions
}

// NewFastSlowRateLimiter returns a limiter with two waits.
func NewFastSlowRateLimiter[K comparable](o FastSlowOptions) *FastSlowRateLimiter[K] {
	return &FastSlowRateLimiter[K]{o: o}
}

// When counts a failure and returns the wait.
func (l *FastSlowRateLimiter[K]) When(key K) time.Duration {
	if l.count(key) < l.o.Attempts {
		return l.o.Fast
	}
	return l.o.Slow
}
