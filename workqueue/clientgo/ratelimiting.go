package clientgo

// NewTypedRateLimitingQueue returns an unnamed queue with delays and a rate limiter.
func NewTypedRateLimitingQueue[T comparable](limiter TypedRateLimiter[T]) TypedRateLimitingInterface[T] {
	return NewTypedRateLimitingQueueWithConfig(limiter, TypedRateLimitingQueueConfig[T]{})
}

// NewTypedRateLimitingQueueWithConfig returns a queue with delays and a rate limiter.
func NewTypedRateLimitingQueueWithConfig[T comparable](limiter TypedRateLimiter[T],
	config TypedRateLimitingQueueConfig[T],
) TypedRateLimitingInterface[T] {
	refuseClock(config.Clock)
	if config.DelayingQueue == nil {
		config.DelayingQueue = NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{
			Name: config.Name, MetricsProvider: config.MetricsProvider,
		})
	}
	return &rateLimiting[T]{TypedDelayingInterface: config.DelayingQueue, limiter: limiter}
}

type rateLimiting[T comparable] struct {
	TypedDelayingInterface[T]
	limiter TypedRateLimiter[T]
}

// AddRateLimited adds the key after the delay that the limiter returns. A queue that is shut down does not call the
// limiter.
func (q *rateLimiting[T]) AddRateLimited(key T) {
	if !q.ShuttingDown() {
		q.AddAfter(key, q.limiter.When(key))
	}
}

// Forget resets the limiter's failure count of the key.
func (q *rateLimiting[T]) Forget(key T) { q.limiter.Forget(key) }

// NumRequeues returns how many failures the limiter has counted.
func (q *rateLimiting[T]) NumRequeues(key T) int { return q.limiter.NumRequeues(key) }
