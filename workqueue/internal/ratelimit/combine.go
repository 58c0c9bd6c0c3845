package ratelimit

import "time"

// Limiter is workqueue.RateLimiter, which describes it.
type Limiter[K comparable] interface {
	When(key K) time.Duration
	Forget(key K)
	NumRequeues(key K) int
}

// MaxOf counts a failure with every limiter and waits for the longest of their waits.
type MaxOf[K comparable] []Limiter[K]

// When counts a failure with every limiter and returns the longest wait.
func (l MaxOf[K]) When(key K) time.Duration {
	var longest time.Duration
	for _, limiter := range l {
		longest = max(longest, limiter.When(key))
	}
	return longest
}

// Forget resets the key's failure count in every limiter.
func (l MaxOf[K]) Forget(key K) {
	for _, limiter := range l {
		limiter.Forget(key)
	}
}

// NumRequeues returns the highest count of the limiters.
func (l MaxOf[K]) NumRequeues(key K) int {
	most := 0
	for _, limiter := range l {
		most = max(most, limiter.NumRequeues(key))
	}
	return most
}

// MaxWait caps the waits of another limiter.
type MaxWait[K comparable] struct {
	Limiter[K]
	Longest time.Duration
}

// When returns the limiter's wait, capped.
func (l MaxWait[K]) When(key K) time.Duration { return min(l.Limiter.When(key), l.Longest) }
