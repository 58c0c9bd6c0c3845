package clientgo

import (
	"context"
	"time"

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

// Done marks the processing of a key as finished.
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
