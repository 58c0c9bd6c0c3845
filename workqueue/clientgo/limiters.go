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

// NewTypedItemExponentialFailureRateLimiter returns a limiter that waits baseDelay·2ⁿ, at most maxDelay.
func NewTypedItemExponentialFailureRateLimiter[T comparable](baseDelay, maxDelay time.Duration) TypedRateLimiter[T] {
	if baseDelay <= 0 || maxDelay <= 0 {
		return NewTypedItemFastSlowRateLimiter[T](0, 0, 0) // zero stays zero, however often it is doubled
	}
	return workqueue.NewExponentialRateLimiter[T](workqueue.ExponentialOptions{Base: baseDelay, Max: maxDelay})
}

// DefaultTypedItemBasedRateLimiter waits 1 ms per key, doubling up to 1000 s.
func DefaultTypedItemBasedRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedItemExponentialFailureRateLimiter[T](time.Millisecond, 1000*time.Second)
}

// NewTypedItemFastSlowRateLimiter returns a limiter that waits fastDelay a few times, then slowDelay.
func NewTypedItemFastSlowRateLimiter[T comparable](fastDelay, slowDelay time.Duration,
	maxFastAttempts int,
) TypedRateLimiter[T] {
	return workqueue.NewFastSlowRateLimiter[T](fastDelay, slowDelay, maxFastAttempts)
}

// NewTypedMaxOfRateLimiter returns a limiter that waits as long as the slowest of several.
func NewTypedMaxOfRateLimiter[T comparable](limiters ...TypedRateLimiter[T]) TypedRateLimiter[T] {
	own := make([]workqueue.RateLimiter[T], len(limiters))
	for i, limiter := range limiters {
		own[i] = limiter
	}
	return workqueue.NewMaxOfRateLimiter(own...)
}

// NewTypedWithMaxWaitRateLimiter returns a limiter whose waits are capped at maxDelay.
func NewTypedWithMaxWaitRateLimiter[T comparable](limiter TypedRateLimiter[T],
	maxDelay time.Duration,
) TypedRateLimiter[T] {
	return workqueue.NewMaxWaitRateLimiter[T](limiter, maxDelay)
}
