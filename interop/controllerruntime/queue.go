package controllerruntime

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	own "github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// NewQueue is for [sigs.k8s.io/controller-runtime/pkg/controller.Options].NewQueue. It replaces controller-runtime's
// priority queue with Flyball's queue. Priorities still work, and keys age: a key of a low priority is served within a
// time that can be computed (see [workqueue.NewPriorityOrder]). The metrics are controller-runtime's own.
//
//	controller.Options{NewQueue: controllerruntime.NewQueue[reconcile.Request]}
func NewQueue[T comparable](name string, limiter peer.TypedRateLimiter[T]) peer.TypedRateLimitingInterface[T] {
	return NewQueueWithOrder(name, limiter, workqueue.NewPriorityOrder[T](workqueue.PriorityOptions{}))
}

// NewQueueWithOrder is NewQueue with an order of the caller's: [workqueue.NewFairOrder] by namespace, say.
func NewQueueWithOrder[T comparable](name string, limiter peer.TypedRateLimiter[T],
	order *workqueue.Order[T],
) priorityqueue.PriorityQueue[T] {
	return newQueue(limiter, workqueue.Options[T]{Name: name, Order: order, MaxCauses: -1})
}

func newQueue[T comparable](limiter peer.TypedRateLimiter[T], o workqueue.Options[T]) *queue[T] {
	if limiter == nil {
		// Source: controller-runtime v0.25.2 pkg/controller/priorityqueue, New.
		limiter = workqueue.NewExponentialRateLimiter[T](workqueue.ExponentialOptions{})
	}
	q := &queue[T]{limiter: limiter}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	o.Metrics = metricsOf(o.Name, &q.gauges)
	q.core = workqueue.New(o)
	q.gauges.start()
	return q
}

// queue implements controller-runtime's PriorityQueue with Flyball's queue.
//
// The contract is that of controller-runtime v0.25.2 pkg/controller/priorityqueue. A key has one entry, with the
// highest of its priorities and the earliest of its delays. A Get of the key ends its delay. Shutting down drops what
// is queued. There are two differences: Len includes an added key at once, and a queue may be shut down more than once.
type queue[T comparable] struct {
	core    *workqueue.Queue[T]
	limiter peer.TypedRateLimiter[T]
	gauges  gauges
	// ctx ends with ShutDown, so that no key is returned after that. It is the queue's lifetime, not a call's.
	ctx    context.Context
	cancel context.CancelFunc
	stop   sync.Once
}

var _ priorityqueue.PriorityQueue[string] = (*queue[string])(nil)

// AddWithOpts adds items, after the shorter of the requested delay and the limiter's.
func (q *queue[T]) AddWithOpts(o priorityqueue.AddOpts, items ...T) {
	if q.ShuttingDown() {
		return
	}
	why := workqueue.Cause{}
	switch {
	case o.RateLimited:
		why.Event = own.WhyRetry
	case o.After > 0:
		why.Event = "RequeueAfter"
	}
	for _, item := range items {
		after := o.After
		if o.RateLimited {
			if wait := q.limiter.When(item); after == 0 || wait < after {
				after = wait
			}
		}
		if after > 0 {
			q.gauges.retry()
		}
		q.core.AddWith(item,
			workqueue.AddOptions{After: after, Requeue: true, Earliest: true, Priority: o.Priority, Cause: why})
	}
}

// GetWithPriority waits for a key.
func (q *queue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	item, err := q.core.Get(q.ctx)
	return item.Key, item.Priority, err != nil
}

// Get waits for a key.
func (q *queue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

func (q *queue[T]) Add(item T) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

func (q *queue[T]) AddAfter(item T, d time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: d}, item)
}

func (q *queue[T]) AddRateLimited(item T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (q *queue[T]) Done(item T)            { q.core.Done(item) }
func (q *queue[T]) Forget(item T)          { q.limiter.Forget(item) }
func (q *queue[T]) NumRequeues(item T) int { return q.limiter.NumRequeues(item) }
func (q *queue[T]) ShuttingDown() bool     { return q.ctx.Err() != nil || q.core.ShuttingDown() }

// Len returns the number of ready keys. It includes keys that were added again while they were worked on.
func (q *queue[T]) Len() int {
	s := q.core.Stats()
	return s.Depth + s.Again
}

// ShutDown makes every Get return, and drops what is queued. It may be called again.
func (q *queue[T]) ShutDown() {
	q.stop.Do(func() {
		q.cancel()
		q.core.ShutDown()
		q.gauges.stop()
	})
}

// ShutDownWithDrain shuts down when all keys that are ready or being worked on are done.
func (q *queue[T]) ShutDownWithDrain() {
	_ = q.core.Drain(q.ctx) // It fails if ShutDown is called in the meantime, which is allowed.
	q.ShutDown()
}

// refreshPeriod is the interval at which gauges are updated.
//
// Source: controller-runtime v0.25.2 pkg/controller/priorityqueue, updateUnfinishedWorkLoop.
const refreshPeriod = 500 * time.Millisecond

// families are controller-runtime's metrics of queues: the registered ones if there are any.
type families struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

// registered returns the collector of that name in the registry, or else c.
func registered[C prometheus.Collector](c C) C {
	var there prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(c); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}

// newFamilies finds controller-runtime's own collectors: its registry returns them to code that tries to register the
// same ones.
//
// Source: controller-runtime v0.25.2 pkg/internal/metrics/workqueue.go, names, help texts and labels.
var newFamilies = sync.OnceValue(func() *families {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help}
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return registered(prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"name", "controller"}))
	}
	gauge := func(o prometheus.Opts, labels ...string) *prometheus.GaugeVec {
		return registered(
			prometheus.NewGaugeVec(prometheus.GaugeOpts(o), append([]string{"name", "controller"}, labels...)),
		)
	}
	counter := func(o prometheus.Opts) *prometheus.CounterVec {
		return registered(prometheus.NewCounterVec(prometheus.CounterOpts(o), []string{"name", "controller"}))
	}
	return &families{
		depth: gauge(name(metrics.DepthKey, "Current depth of workqueue by workqueue and priority"), "priority"),
		adds:  counter(name(metrics.AddsKey, "Total number of adds handled by workqueue")),
		retries: counter(name(metrics.RetriesKey, "Total number of items added to the workqueue with a non-zero delay "+
			"(rate-limited requeues, explicit RequeueAfter or AddAfter calls)")),
		latency: histogram(metrics.QueueLatencyKey,
			"How long in seconds an item stays in workqueue before being requested"),
		work: histogram(metrics.WorkDurationKey, "How long in seconds processing an item from workqueue takes."),
		unfinished: gauge(name(metrics.UnfinishedWorkKey, "How many seconds of work has been done that "+
			"is in progress and hasn't been observed by work_duration. Large "+
			"values indicate stuck threads. One can deduce the number of stuck "+
			"threads by observing the rate at which this increases.")),
		longest: gauge(name(metrics.LongestRunningProcessorKey, "How many seconds has the longest running "+
			"processor for workqueue been running.")),
	}
})

// gauges update controller-runtime's metrics from a queue's statistics, every refreshPeriod. Scrapes, which read them,
// are farther apart than that. All fields are nil for a queue without a name, which has no metrics.
type gauges struct {
	depth, unfinished, longest prometheus.Gauge
	adds, retries              prometheus.Counter
	latency, work              prometheus.Observer

	stats   func() workqueue.Stats
	stopped chan struct{}
	wg      sync.WaitGroup
	// added is the number of adds that were counted. Only the goroutine uses it, and stop after the goroutine has
	// ended.
	added uint64
}

// metricsOf fills in g for the queue of that name. Without a name there are no metrics.
func metricsOf(name string, g *gauges) workqueue.MetricsProvider {
	if name == "" {
		return nil
	}
	f := newFamilies()
	g.depth, g.unfinished, g.longest = f.depth.WithLabelValues(name, name, ""),
		f.unfinished.WithLabelValues(name, name), f.longest.WithLabelValues(name, name)
	g.adds, g.retries = f.adds.WithLabelValues(name, name), f.retries.WithLabelValues(name, name)
	g.latency, g.work = f.latency.WithLabelValues(name, name), f.work.WithLabelValues(name, name)
	g.stopped = make(chan struct{})
	return g
}

// NewQueueMetrics implements workqueue.MetricsProvider.
func (g *gauges) NewQueueMetrics(_ string, stats func() workqueue.Stats) workqueue.Metrics {
	g.stats = stats
	return g
}

// ObserveQueueDuration implements workqueue.Metrics.
func (g *gauges) ObserveQueueDuration(d time.Duration) { g.latency.Observe(d.Seconds()) }

// ObserveWorkDuration implements workqueue.Metrics.
func (g *gauges) ObserveWorkDuration(d time.Duration) { g.work.Observe(d.Seconds()) }

func (g *gauges) retry() {
	if g.retries != nil {
		g.retries.Inc()
	}
}

func (g *gauges) refresh() {
	now := g.stats()
	g.adds.Add(float64(now.Adds - g.added))
	g.added = now.Adds
	g.depth.Set(float64(now.Depth))
	g.unfinished.Set(now.UnfinishedWork.Seconds())
	g.longest.Set(now.LongestRunning.Seconds())
}

// start starts the refresh; stop ends it with a last refresh.
func (g *gauges) start() {
	if g.stopped == nil {
		return
	}
	g.wg.Go(func() {
		ticker := time.NewTicker(refreshPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				g.refresh()
			case <-g.stopped:
				return
			}
		}
	})
}

func (g *gauges) stop() {
	if g.stopped == nil {
		return
	}
	close(g.stopped)
	g.wg.Wait()
	g.refresh()
}
