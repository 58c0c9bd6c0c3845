package clientgo

import (
	"time"

	"k8s.io/utils/clock"
)

// Interface and the other aliases are the names from before client-go had type parameters. client-go deprecates them;
// new code uses the Typed names.
type (
	Interface                         = TypedInterface[any]
	DelayingInterface                 = TypedDelayingInterface[any]
	RateLimitingInterface             = TypedRateLimitingInterface[any]
	RateLimiter                       = TypedRateLimiter[any]
	Type                              = Typed[any]
	QueueConfig                       = TypedQueueConfig[any]
	DelayingQueueConfig               = TypedDelayingQueueConfig[any]
	RateLimitingQueueConfig           = TypedRateLimitingQueueConfig[any]
	BucketRateLimiter                 = TypedBucketRateLimiter[any]
	ItemExponentialFailureRateLimiter = TypedItemExponentialFailureRateLimiter[any]
	ItemFastSlowRateLimiter           = TypedItemFastSlowRateLimiter[any]
	MaxOfRateLimiter                  = TypedMaxOfRateLimiter[any]
	WithMaxWaitRateLimiter            = TypedWithMaxWaitRateLimiter[any]
)

// New is [NewTyped] of any.
func New() *Type { return NewTyped[any]() }

// NewWithConfig is [NewTypedWithConfig] of any.
func NewWithConfig(config QueueConfig) *Type { return NewTypedWithConfig(config) }

// NewNamed is [NewTypedWithConfig] of any, with a name.
func NewNamed(name string) *Type { return NewTypedWithConfig(QueueConfig{Name: name}) }

// NewDelayingQueue is [NewTypedDelayingQueue] of any.
func NewDelayingQueue() DelayingInterface { return NewTypedDelayingQueue[any]() }

// TypedNewDelayingQueue is [NewTypedDelayingQueue].
func TypedNewDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueue[T]()
}

// NewDelayingQueueWithConfig is [NewTypedDelayingQueueWithConfig] of any.
func NewDelayingQueueWithConfig(config DelayingQueueConfig) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(config)
}

// NewDelayingQueueWithCustomQueue is [NewTypedDelayingQueueWithConfig] of any, with a name and a queue.
func NewDelayingQueueWithCustomQueue(q Interface, name string) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(DelayingQueueConfig{Name: name, Queue: q})
}

// NewNamedDelayingQueue is [NewTypedDelayingQueueWithConfig] of any, with a name.
func NewNamedDelayingQueue(name string) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(DelayingQueueConfig{Name: name})
}

// NewDelayingQueueWithCustomClock is [NewTypedDelayingQueueWithConfig] of any, with a name and a clock, which must be
// real.
func NewDelayingQueueWithCustomClock(c clock.WithTicker, name string) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(DelayingQueueConfig{Name: name, Clock: c})
}

// NewRateLimitingQueue is [NewTypedRateLimitingQueue] of any.
func NewRateLimitingQueue(limiter RateLimiter) RateLimitingInterface {
	return NewTypedRateLimitingQueue(limiter)
}

// NewRateLimitingQueueWithConfig is [NewTypedRateLimitingQueueWithConfig] of any.
func NewRateLimitingQueueWithConfig(limiter RateLimiter, config RateLimitingQueueConfig) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(limiter, config)
}

// NewNamedRateLimitingQueue is [NewTypedRateLimitingQueueWithConfig] of any, with a name.
func NewNamedRateLimitingQueue(limiter RateLimiter, name string) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(limiter, RateLimitingQueueConfig{Name: name})
}

// NewRateLimitingQueueWithDelayingInterface is [NewTypedRateLimitingQueueWithConfig] of any, with a delaying queue.
func NewRateLimitingQueueWithDelayingInterface(di DelayingInterface, limiter RateLimiter) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(limiter, RateLimitingQueueConfig{DelayingQueue: di})
}

// DefaultControllerRateLimiter is [DefaultTypedControllerRateLimiter] of any.
func DefaultControllerRateLimiter() RateLimiter { return DefaultTypedControllerRateLimiter[any]() }

// DefaultItemBasedRateLimiter is [DefaultTypedItemBasedRateLimiter] of any.
func DefaultItemBasedRateLimiter() RateLimiter { return DefaultTypedItemBasedRateLimiter[any]() }

// NewItemExponentialFailureRateLimiter is [NewTypedItemExponentialFailureRateLimiter] of any.
func NewItemExponentialFailureRateLimiter(baseDelay, maxDelay time.Duration) RateLimiter {
	return NewTypedItemExponentialFailureRateLimiter[any](baseDelay, maxDelay)
}

// NewItemFastSlowRateLimiter is [NewTypedItemFastSlowRateLimiter] of any.
func NewItemFastSlowRateLimiter(fastDelay, slowDelay time.Duration, maxFastAttempts int) RateLimiter {
	return NewTypedItemFastSlowRateLimiter[any](fastDelay, slowDelay, maxFastAttempts)
}

// NewMaxOfRateLimiter is [NewTypedMaxOfRateLimiter] of any.
func NewMaxOfRateLimiter(limiters ...TypedRateLimiter[any]) RateLimiter {
	return NewTypedMaxOfRateLimiter(limiters...)
}

// NewWithMaxWaitRateLimiter is [NewTypedWithMaxWaitRateLimiter] of any.
func NewWithMaxWaitRateLimiter(limiter RateLimiter, maxDelay time.Duration) RateLimiter {
	return NewTypedWithMaxWaitRateLimiter(limiter, maxDelay)
}
