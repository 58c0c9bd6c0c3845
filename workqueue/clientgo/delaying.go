package clientgo

import (
	"context"
	"sync"
	"time"

	peer "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

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

// delaying exposes the delays that a queue of this package has anyway.
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
