package clientgo

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	peer "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/flyball-dev/flyball/workqueue"
)

// Typed is a queue without delays.
type Typed[T comparable] struct {
	core *workqueue.Queue[T]
	// gauges are nil if the queue has no metrics.
	gauges *gauges
}

// NewTyped returns an unnamed queue.
func NewTyped[T comparable]() *Typed[T] { return NewTypedWithConfig(TypedQueueConfig[T]{}) }

// NewTypedWithConfig returns a queue. If it has a name and metrics, a goroutine refreshes the metrics until ShutDown.
func NewTypedWithConfig[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	refuseClock(config.Clock)
	if config.Queue != nil {
		panic("workqueue/clientgo: Queue is not supported: it would be called under the lock; " +
			"use workqueue.New with an Order instead")
	}
	o := workqueue.Options[T]{Name: config.Name, MaxCauses: -1}
	q := &Typed[T]{gauges: newGauges(config.Name, config.MetricsProvider)}
	if q.gauges != nil {
		o.Metrics = q.gauges
	}
	q.core = workqueue.New(o)
	q.gauges.start()
	return q
}

// refuseClock panics for a clock that the queue would not read.
func refuseClock(c clock.WithTicker) {
	switch c.(type) {
	case nil, clock.RealClock, *clock.RealClock:
	default:
		panic("workqueue/clientgo: Clock is not supported; virtualise time with testing/synctest")
	}
}

// Add makes the key ready, or ready again once it is done.
func (q *Typed[T]) Add(key T) {
	q.core.Add(key)
	q.gauges.sync()
}

// addAfter makes the key ready after d has passed.
func (q *Typed[T]) addAfter(key T, d time.Duration) {
	q.core.AddAfter(key, d)
	q.gauges.sync()
}

// Len returns the number of ready keys.
func (q *Typed[T]) Len() int { return q.core.Len() }

// Get waits for a key. It returns true if the queue is shut down and empty, so that there will be no more keys.
func (q *Typed[T]) Get() (key T, shutdown bool) {
	item, err := q.core.Get(context.Background())
	q.gauges.sync()
	return item.Key, err != nil
}

// Done marks the processing of a key as finished. It does nothing for a key that is not being processed.
func (q *Typed[T]) Done(key T) {
	q.core.Done(key)
	q.gauges.sync()
}

// ShutDown stops intake; ready keys are still handed out. It ends a waiting ShutDownWithDrain.
func (q *Typed[T]) ShutDown() {
	q.core.ShutDown()
	q.gauges.stop()
}

// ShutDownWithDrain stops intake and waits until all work is done, or ShutDown is called.
func (q *Typed[T]) ShutDownWithDrain() {
	// The only possible error is that ShutDown was called. client-go's callers expect that to end the wait.
	_ = q.core.Drain(context.Background())
	q.gauges.stop()
}

// ShuttingDown reports whether ShutDown or ShutDownWithDrain was called.
func (q *Typed[T]) ShuttingDown() bool { return q.core.ShuttingDown() }

// NewTypedDelayingQueue returns an unnamed queue with delays.
func NewTypedDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{})
}

// NewTypedDelayingQueueWithConfig returns a queue with delays. If config.Queue is of another package, keys are added to
// it when their delay is over.
func NewTypedDelayingQueueWithConfig[T comparable](config TypedDelayingQueueConfig[T]) TypedDelayingInterface[T] {
	refuseClock(config.Clock)
	retries := newRetries(config.Name, config.MetricsProvider)
	switch queue := config.Queue.(type) {
	case nil:
		own := NewTypedWithConfig(TypedQueueConfig[T]{Name: config.Name, MetricsProvider: config.MetricsProvider})
		return &delaying[T]{Typed: own, retries: retries}
	case *Typed[T]:
		return &delaying[T]{Typed: queue, retries: retries}
	default:
		return &foreign[T]{
			TypedInterface: queue, retries: retries,
			delays: workqueue.New(workqueue.Options[T]{MaxCauses: -1}),
		}
	}
}

// delaying adds AddAfter to a queue of this package.
type delaying[T comparable] struct {
	*Typed[T]
	retries peer.CounterMetric
}

// AddAfter adds the key after d has passed. If a key has several delays, the earliest counts.
func (q *delaying[T]) AddAfter(key T, d time.Duration) {
	if q.ShuttingDown() {
		return
	}
	q.retries.Inc()
	q.addAfter(key, d)
}

// foreign adds delays to a queue of another package.
type foreign[T comparable] struct {
	TypedInterface[T]
	retries peer.CounterMetric
	// delays holds the waiting keys. The pump takes those that become ready and adds them to the queue.
	delays *workqueue.Queue[T]
	// pump is started by the first delay. Both shutdown methods wait for it.
	start sync.Once
	pump  sync.WaitGroup
}

// AddAfter adds the key after d has passed. If a key has several delays, the earliest counts.
func (q *foreign[T]) AddAfter(key T, d time.Duration) {
	if q.ShuttingDown() {
		return
	}
	q.retries.Inc()
	if d <= 0 {
		q.Add(key)
		return
	}
	q.delays.AddAfter(key, d)
	q.start.Do(func() {
		q.pump.Go(func() {
			for {
				item, err := q.delays.Get(context.Background())
				if err != nil {
					return
				}
				q.Add(item.Key)
				q.delays.Done(item.Key)
			}
		})
	})
}

func (q *foreign[T]) stopDelays() {
	q.start.Do(func() {})
	q.delays.ShutDown()
	q.pump.Wait()
}

// ShutDown drops all delays and shuts the queue down.
func (q *foreign[T]) ShutDown() {
	q.stopDelays()
	q.TypedInterface.ShutDown()
}

// ShutDownWithDrain drops all delays and drains the queue.
func (q *foreign[T]) ShutDownWithDrain() {
	q.stopDelays()
	q.TypedInterface.ShutDownWithDrain()
}

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
