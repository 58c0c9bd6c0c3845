package clientgo

import (
	peer "k8s.io/client-go/util/workqueue"
)

// TypedInterface is client-go's queue.
type TypedInterface[T comparable] = peer.TypedInterface[T]

// TypedDelayingInterface is client-go's queue with delays.
type TypedDelayingInterface[T comparable] = peer.TypedDelayingInterface[T]

// TypedRateLimitingInterface is client-go's queue with delays and a rate limiter.
type TypedRateLimitingInterface[T comparable] = peer.TypedRateLimitingInterface[T]

// TypedRateLimiter decides how long a key that failed waits.
type TypedRateLimiter[T comparable] = peer.TypedRateLimiter[T]

// TypedQueueConfig configures [NewTypedWithConfig].
type TypedQueueConfig[T comparable] = peer.TypedQueueConfig[T]

// TypedDelayingQueueConfig configures [NewTypedDelayingQueueWithConfig].
type TypedDelayingQueueConfig[T comparable] = peer.TypedDelayingQueueConfig[T]

// TypedRateLimitingQueueConfig configures [NewTypedRateLimitingQueueWithConfig].
type TypedRateLimitingQueueConfig[T comparable] = peer.TypedRateLimitingQueueConfig[T]

// MetricsProvider creates the metrics of a queue.
type MetricsProvider = peer.MetricsProvider
