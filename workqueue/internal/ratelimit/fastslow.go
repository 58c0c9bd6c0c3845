package ratelimit

import "time"

// FastSlow retries quickly a few times, then slowly.
type FastSlow[K comparable] struct {
	// Fast is the wait after each of the first Attempts failures, Slow the wait after all later ones.
	Fast, Slow time.Duration
	Attempts   int

	failures[K]
}

// When counts a failure and returns the wait.
func (l *FastSlow[K]) When(key K) time.Duration {
	if l.count(key) < l.Attempts {
		return l.Fast
	}
	return l.Slow
}
