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

// Queue is client-go's custom storage: the order in which ready keys are handed out.
type Queue[T comparable] = peer.Queue[T]

// TypedQueueConfig configures [NewTypedWithConfig].
type TypedQueueConfig[T comparable] = peer.TypedQueueConfig[T]

// TypedDelayingQueueConfig configures [NewTypedDelayingQueueWithConfig].
type TypedDelayingQueueConfig[T comparable] = peer.TypedDelayingQueueConfig[T]

// TypedRateLimitingQueueConfig configures [NewTypedRateLimitingQueueWithConfig].
type TypedRateLimitingQueueConfig[T comparable] = peer.TypedRateLimitingQueueConfig[T]

// MetricsProvider creates the metrics of a queue; the other types are the metrics that it creates.
type (
	MetricsProvider     = peer.MetricsProvider
	GaugeMetric         = peer.GaugeMetric
	SettableGaugeMetric = peer.SettableGaugeMetric
	CounterMetric       = peer.CounterMetric
	SummaryMetric       = peer.SummaryMetric
	HistogramMetric     = peer.HistogramMetric
)
