package clientgo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	peer "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// provider is the value that SetProvider stored. It is Flyball's only global state: client-go's function is global too.
var provider atomic.Pointer[MetricsProvider]

// SetProvider sets the metrics provider of queues that are created later without a provider of their own. Only the
// first call has an effect. It affects only queues of this package, which cannot see the provider that client-go's
// function of the same name was given.
func SetProvider(p MetricsProvider) { provider.CompareAndSwap(nil, &p) }

// chooseProvider returns nil if a queue has no metrics.
func chooseProvider(name string, own MetricsProvider) MetricsProvider {
	if name == "" {
		return nil
	}
	if global := provider.Load(); own == nil && global != nil {
		return *global
	}
	return own
}

type noCounter struct{}

func (noCounter) Inc() {}

func newRetries(name string, own MetricsProvider) peer.CounterMetric {
	p := chooseProvider(name, own)
	if p == nil {
		return noCounter{}
	}
	return p.NewRetriesMetric(name)
}

// refreshPeriod is the interval at which the gauges are refreshed, whether or not the queue is in use.
//
// Source: client-go v0.37.2 util/workqueue/queue.go, defaultUnfinishedWorkUpdatePeriod.
const refreshPeriod = 500 * time.Millisecond

// gauges connects Flyball's queue, whose metrics are pulled, to client-go's metrics, which are pushed. sync, start and
// stop do nothing on nil.
type gauges struct {
	depth               peer.GaugeMetric
	adds                peer.CounterMetric
	latency, work       peer.HistogramMetric
	unfinished, longest peer.SettableGaugeMetric

	stats func() workqueue.Stats

	mu sync.Mutex
	// pushed is what the metrics show now.
	pushed workqueue.Stats

	stopOnce sync.Once
	// stopped is closed by stop to end the goroutine.
	stopped chan struct{}
	wg      sync.WaitGroup
}

func newGauges(name string, own MetricsProvider) *gauges {
	p := chooseProvider(name, own)
	if p == nil {
		return nil
	}
	return &gauges{
		depth: p.NewDepthMetric(name), adds: p.NewAddsMetric(name),
		latency: p.NewLatencyMetric(name), work: p.NewWorkDurationMetric(name),
		unfinished: p.NewUnfinishedWorkSecondsMetric(name), longest: p.NewLongestRunningProcessorSecondsMetric(name),
		stopped: make(chan struct{}),
	}
}

// NewQueueMetrics makes gauges the metrics of a [workqueue.Queue].
func (g *gauges) NewQueueMetrics(_ string, stats func() workqueue.Stats) workqueue.Metrics {
	g.stats = stats
	return g
}

// ObserveQueueDuration passes the duration on.
func (g *gauges) ObserveQueueDuration(d time.Duration) { g.latency.Observe(d.Seconds()) }

// ObserveWorkDuration passes the duration on.
func (g *gauges) ObserveWorkDuration(d time.Duration) { g.work.Observe(d.Seconds()) }

// sync brings depth and adds up to date. It takes the snapshot under the lock, so that an older one never follows a
// newer one.
func (g *gauges) sync() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.syncLocked()
}

func (g *gauges) syncLocked() workqueue.Stats {
	now := g.stats()
	for ; g.pushed.Adds < now.Adds; g.pushed.Adds++ {
		g.adds.Inc()
	}
	for ; g.pushed.Depth < now.Depth; g.pushed.Depth++ {
		g.depth.Inc()
	}
	for ; g.pushed.Depth > now.Depth; g.pushed.Depth-- {
		g.depth.Dec()
	}
	return now
}

func (g *gauges) refresh() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.syncLocked()
	g.unfinished.Set(now.UnfinishedWork.Seconds())
	g.longest.Set(now.LongestRunning.Seconds())
}

// start starts the goroutine that refreshes the gauges; stop ends it and waits.
func (g *gauges) start() {
	if g == nil {
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
	if g == nil {
		return
	}
	g.stopOnce.Do(func() { close(g.stopped) })
	g.wg.Wait()
}

// ParallelizeUntil is client-go's: it calls doWorkPiece for the pieces 0 to pieces-1 from several workers, until all
// are done or ctx is done.
func ParallelizeUntil(ctx context.Context, workers, pieces int, doWorkPiece peer.DoWorkPieceFunc,
	opts ...peer.Options,
) {
	peer.ParallelizeUntil(ctx, workers, pieces, doWorkPiece, opts...)
}
