package workqueue

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// RateLimiter decides how long a key that failed waits before it is retried.
//
// Concurrency: a queue calls its limiter from several goroutines at once, without holding a lock.
type RateLimiter[K comparable] interface {
	// When counts one more failure of the key and returns how long to wait.
	When(key K) time.Duration
	// Forget resets the key's failure count.
	Forget(key K)
	// NumRequeues returns the number of failures since the last Forget.
	NumRequeues(key K) int
}

// DefaultControllerRateLimiter returns the rate limiter that controllers use by default. Each key waits 5 ms after its
// first failure, doubling up to 1000 s. All keys together share a bucket of 100 tokens that refills at 10 per second.
// The longer wait counts.
//
// Source: client-go v0.37.2 util/workqueue, DefaultTypedControllerRateLimiter.
func DefaultControllerRateLimiter[K comparable]() RateLimiter[K] {
	return NewMaxOfRateLimiter[K](
		NewExponentialRateLimiter[K](ExponentialOptions{Base: 5 * time.Millisecond, Max: 1000 * time.Second}),
		NewBucketRateLimiter[K](BucketOptions{Rate: 10, Burst: 100}),
	)
}

// MaxOfRateLimiter returns the longest wait of several limiters.
type MaxOfRateLimiter[K comparable] struct {
	limiters []RateLimiter[K]
}

// NewMaxOfRateLimiter returns a limiter that counts a failure with every given limiter and waits for the longest of
// their waits.
func NewMaxOfRateLimiter[K comparable](limiters ...RateLimiter[K]) *MaxOfRateLimiter[K] {
	if len(limiters) == 0 {
		panic(
			"workqueue: NewMaxOfRateLimiter: there is no limiter: keys that fail would be tried again at once, for " +
				"ever",
		)
	}
	for i, limiter := range limiters {
		if misuse.IsNil(limiter) {
			panic(fmt.Sprintf("workqueue: NewMaxOfRateLimiter: limiter %d is nil", i+1))
		}
	}
	return &MaxOfRateLimiter[K]{limiters: limiters}
}

// When asks every limiter and returns the longest wait.
func (l *MaxOfRateLimiter[K]) When(key K) time.Duration {
	var longest time.Duration
	for _, limiter := range l.limiters {
		longest = max(longest, limiter.When(key))
	}
	return longest
}

// Forget forgets the key in every limiter.
func (l *MaxOfRateLimiter[K]) Forget(key K) {
	for _, limiter := range l.limiters {
		limiter.Forget(key)
	}
}

// NumRequeues returns the highest count of the limiters.
func (l *MaxOfRateLimiter[K]) NumRequeues(key K) int {
	most := 0
	for _, limiter := range l.limiters {
		most = max(most, limiter.NumRequeues(key))
	}
	return most
}

// MaxWaitRateLimiter caps the waits of another limiter.
type MaxWaitRateLimiter[K comparable] struct {
	RateLimiter[K]
	longest time.Duration
}

// NewMaxWaitRateLimiter returns a limiter whose waits are those of the given one, capped at longest.
func NewMaxWaitRateLimiter[K comparable](limiter RateLimiter[K], longest time.Duration) *MaxWaitRateLimiter[K] {
	if misuse.IsNil(limiter) || longest <= 0 {
		panic(
			fmt.Sprintf("workqueue: NewMaxWaitRateLimiter: the limiter is nil or the longest wait, %v, is not above 0",
				longest),
		)
	}
	return &MaxWaitRateLimiter[K]{RateLimiter: limiter, longest: longest}
}

// When returns the limiter's wait, capped.
func (l *MaxWaitRateLimiter[K]) When(key K) time.Duration {
	return min(l.RateLimiter.When(key), l.longest)
}
