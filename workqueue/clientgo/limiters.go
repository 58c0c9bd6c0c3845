package clientgo

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/flyball-dev/flyball/workqueue"
)

// DefaultTypedControllerRateLimiter waits 5 ms per key, doubling up to 1000 s, and limits all keys together to 10 per
// second with a burst of 100.
func DefaultTypedControllerRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedMaxOfRateLimiter(
		NewTypedItemExponentialFailureRateLimiter[T](5*time.Millisecond, 1000*time.Second),
		&TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(rate.Limit(10), 100)},
	)
}

// TypedBucketRateLimiter limits the retries of all keys together. Its waits are not bounded.
type TypedBucketRateLimiter[T comparable] struct {
	*rate.Limiter
}

// When reserves the next token.
func (r *TypedBucketRateLimiter[T]) When(T) time.Duration { return r.Reserve().Delay() }

// NumRequeues returns 0.
func (r *TypedBucketRateLimiter[T]) NumRequeues(T) int { return 0 }

// Forget does nothing.
func (r *TypedBucketRateLimiter[T]) Forget(T) {}

// TypedItemExponentialFailureRateLimiter doubles a key's wait with every failure.
type TypedItemExponentialFailureRateLimiter[T comparable] struct {
	workqueue.RateLimiter[T]
}

// NewTypedItemExponentialFailureRateLimiter returns a limiter that waits baseDelay·2ⁿ, at most maxDelay.
func NewTypedItemExponentialFailureRateLimiter[T comparable](baseDelay, maxDelay time.Duration) TypedRateLimiter[T] {
	if baseDelay <= 0 || maxDelay <= 0 {
		return NewTypedItemFastSlowRateLimiter[T](0, 0, 0) // zero stays zero, however often it is doubled
	}
	return &TypedItemExponentialFailureRateLimiter[T]{
		workqueue.NewExponentialRateLimiter[T](workqueue.ExponentialOptions{Base: baseDelay, Max: maxDelay}),
	}
}

// DefaultTypedItemBasedRateLimiter waits 1 ms per key, doubling up to 1000 s.
func DefaultTypedItemBasedRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedItemExponentialFailureRateLimiter[T](time.Millisecond, 1000*time.Second)
}

// TypedItemFastSlowRateLimiter retries quickly a few times, then slowly.
type TypedItemFastSlowRateLimiter[T comparable] struct {
	workqueue.RateLimiter[T]
}

// NewTypedItemFastSlowRateLimiter returns a limiter with two waits.
func NewTypedItemFastSlowRateLimiter[T comparable](fastDelay, slowDelay time.Duration,
	maxFastAttempts int,
) TypedRateLimiter[T] {
	return &TypedItemFastSlowRateLimiter[T]{
		workqueue.NewFastSlowRateLimiter[T](
			workqueue.FastSlowOptions{Fast: fastDelay, Slow: slowDelay, Attempts: maxFastAttempts},
		),
	}
}

// TypedMaxOfRateLimiter returns the longest wait of several limiters.
type TypedMaxOfRateLimiter[T comparable] struct {
	workqueue.RateLimiter[T]
}

// NewTypedMaxOfRateLimiter returns a limiter that combines the given ones.
func NewTypedMaxOfRateLimiter[T comparable](limiters ...TypedRateLimiter[T]) TypedRateLimiter[T] {
	own := make([]workqueue.RateLimiter[T], len(limiters))
	for i, limiter := range limiters {
		own[i] = limiter
	}
	return &TypedMaxOfRateLimiter[T]{workqueue.NewMaxOfRateLimiter(own...)}
}

// TypedWithMaxWaitRateLimiter caps the waits of another limiter.
type TypedWithMaxWaitRateLimiter[T comparable] struct {
	workqueue.RateLimiter[T]
}

// NewTypedWithMaxWaitRateLimiter returns a limiter whose waits are capped at maxDelay.
func NewTypedWithMaxWaitRateLimiter[T comparable](limiter TypedRateLimiter[T],
	maxDelay time.Duration,
) TypedRateLimiter[T] {
	return &TypedWithMaxWaitRateLimiter[T]{workqueue.NewMaxWaitRateLimiter[T](limiter, maxDelay)}
}
