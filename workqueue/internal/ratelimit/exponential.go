package ratelimit

import "time"

// Exponential doubles a key's wait with every failure: it waits Base·2ⁿ after n earlier failures, and at most Max.
type Exponential[K comparable] struct {
	// Base is the wait after the first failure. Max bounds every wait, jitter included.
	Base, Max time.Duration
	// Jitter lengthens each wait by a random fraction between 0 and Jitter. Zero or less means no jitter.
	Jitter float64
	// Random returns numbers in [0, 1). It must be safe for concurrent use.
	Random func() float64

	failures[K]
}

// When counts a failure and returns the wait.
func (l *Exponential[K]) When(key K) time.Duration {
	wait := l.backoff(l.count(key))
	if l.Jitter <= 0 {
		return wait
	}
	jittered := float64(wait) * (1 + l.Jitter*l.Random())
	if jittered >= float64(l.Max) {
		return l.Max
	}
	return time.Duration(jittered)
}

// backoff doubles Base n times, up to Max. It compares with Max before each step rather than after, so that no step can
// overflow.
func (l *Exponential[K]) backoff(n int) time.Duration {
	wait := l.Base
	for ; n > 0 && wait < l.Max; n-- {
		if wait > l.Max/2 {
			return l.Max
		}
		wait *= 2
	}
	return min(wait, l.Max)
}
