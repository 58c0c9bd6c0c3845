package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/latency"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/reconcile/internal/counters"
	"github.com/flyball-dev/flyball/reconcile/internal/deadline"
	"github.com/flyball-dev/flyball/reconcile/internal/debounce"
	"github.com/flyball-dev/flyball/reconcile/internal/feed"
	"github.com/flyball-dev/flyball/reconcile/internal/forbidden"
	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
	"github.com/flyball-dev/flyball/workqueue"
)

// engine is the loop of a [Controller]: the queue, the sources that fill it, and the workers that empty it.
type engine[K comparable] struct {
	name string
	// invalid describes what is wrong with the arguments of New, or is nil. Run returns it.
	invalid    error
	reconciler Reconciler[K]
	options    Options[K]
	queue      *workqueue.Queue[K]
	feeds      feed.Feeds[K] // runs the sources
	checks     checks[K]     // mu guards deadlines and forbidden

	stats     counters.Live
	outcomes  [outcomes]atomic.Uint64 // the number of reconciles that ended with each outcome
	durations *latency.Recorder       // of the reconciles

	// stop ends Run with an error. trace records each reconcile; it is nil if tracing is off. Run sets both before the
	// workers start.
	stop  context.CancelCauseFunc
	trace *trace.Recorder

	mu sync.Mutex // guards keys, and the checks named above
	// keys has what the controller knows about each key.
	keys table[K]
}

func newEngine[K comparable](name string, r Reconciler[K], o Options[K]) *engine[K] {
	o.DrainTimeout = cmp.Or(max(o.DrainTimeout, 0), defaultDrainTimeout)
	o.Workers = max(o.Workers, 1)
	o.HungAfter = cmp.Or(o.HungAfter, defaultPatience)
	o.FailingAfter = cmp.Or(o.FailingAfter, defaultPatience)
	return &engine[K]{
		name:       name,
		invalid:    errors.Join(misuse.Name(name), misuse.Nil("the reconciler", r)),
		reconciler: r,
		options:    o,
		queue: workqueue.New(workqueue.Options[K]{
			Name: name, RateLimiter: o.RateLimiter, Metrics: o.Metrics, Order: o.Order,
		}),
		durations: latency.New(buckets),
		checks: checks[K]{
			deadlines: deadline.New(deadline.Limits{Slow: o.ReleaseAfter, Hung: o.HungAfter}),
			forbidden: forbidden.Permissions[K]{},
			hotloop:   hotloop.New[K](name, whyRequeue),
		},
		keys: newTable[K](
			debounce.Limits{Interval: o.MinInterval, Quiet: o.Debounce, Longest: o.MaxDebounce}.WithDefaults(),
		),
	}
}

func (c *engine[K]) Name() string { return c.name }

// Add queues a key for a source or a user. The loop does not use it for retries, which debouncing must not delay.
func (c *engine[K]) Add(key K, o workqueue.AddOptions) {
	c.stats.Adds.Add(1)
	if c.keys.limits.Quiet > 0 && o.After <= 0 && !o.RateLimited {
		now := time.Now()
		c.mu.Lock()
		c.keys.obtain(key).debounce.Added(now)
		c.mu.Unlock()
	}
	c.queue.AddWith(key, o)
}

func (c *engine[K]) Run(ctx context.Context) error {
	if c.invalid != nil {
		return fmt.Errorf("controller %q: %w", c.name, c.invalid)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "controller", c.name)
	intake, stop := context.WithCancelCause(klog.NewContext(ctx, logger))
	defer stop(nil)
	work, release := workctx.From(intake, c.options.DrainTimeout)
	defer release()

	if !c.feeds.Start(intake, stop) {
		return fmt.Errorf("controller %s: run: %w", c.name, ErrStopped)
	}
	c.stop, c.trace = stop, trace.From(ctx)
	var workers, deadlines sync.WaitGroup
	deadlines.Go(func() {
		c.checks.deadlines.Run(intake, &c.mu, func(now time.Time) { c.checkDeadlines(intake, now) })
	})
	if c.feeds.WaitSynced(intake) {
		logger.Info("Starting workers", "workers", c.options.Workers)
		for range c.options.Workers {
			workers.Go(func() { c.runWorker(intake, work) })
		}
		c.feeds.Flush(c.queue.AddWith)
	}
	<-intake.Done()
	c.feeds.Stop()
	idle := make(chan struct{}) // closed below when all workers have returned; nothing is sent
	go func() { workers.Wait(); close(idle) }()
	stuck := c.drain(work, idle)
	c.feeds.Wait()
	deadlines.Wait()
	c.queue.ShutDown()
	if cause := context.Cause(intake); ctx.Err() == nil {
		return errors.Join(cause, stuck)
	}
	logger.Info("Stopped", "queued", c.queue.Len(), "left", c.Left(mostLeftInLog))
	return stuck
}

func (c *engine[K]) Warmup(ctx context.Context) error {
	if on := c.options.EnableWarmup; on != nil && !*on {
		return nil
	}
	return c.feeds.Warmup(klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "controller", c.name)))
}

// drain waits until idle is closed. It gives up abandonAfter after work is cancelled.
func (c *engine[K]) drain(work context.Context, idle <-chan struct{}) error {
	select {
	case <-idle:
		return nil
	case <-work.Done():
	}
	patience := time.NewTimer(abandonAfter)
	defer patience.Stop()
	select {
	case <-idle:
		return nil
	case <-patience.C:
		return &StuckError{Controller: c.name, Keys: c.InFlight()}
	}
}
