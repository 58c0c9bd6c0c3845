package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/latency"
	"github.com/flyball-dev/flyball/internal/loop"
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

// engine is the loop of a [Controller]: the queue, the sources that feed it and the workers that work it off.
type engine[K comparable] struct {
	name string
	// wrong is what was wrong with the arguments of New, for Run to return.
	wrong      error
	reconciler Reconciler[K]
	options    Options[K]
	queue      *workqueue.Queue[K]
	stats      counters.Live
	took       *latency.Recorder // of every reconcile
	rooms      rooms[K]          // deadlines and forbidden are guarded by mu

	// feeds runs the sources.
	feeds feed.Feeds[K]
	// stop ends Run with an error. Run sets it before the workers start.
	stop context.CancelCauseFunc
	// trace is told of each reconcile; nil if nobody wants to know. Run sets it before the workers start.
	trace *trace.Recorder

	mu sync.Mutex
	// keys has what is known of each key.
	keys table[K]
}

func newEngine[K comparable](name string, r Reconciler[K], o Options[K]) *engine[K] {
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = defaultDrainTimeout
	}
	o.Workers = max(o.Workers, 1)
	o.HungAfter = cmp.Or(o.HungAfter, defaultPatience)
	o.FailingAfter = cmp.Or(o.FailingAfter, defaultPatience)
	return &engine[K]{
		name:       name,
		wrong:      errors.Join(misuse.Name(name), misuse.Nil("the reconciler", r)),
		reconciler: r,
		options:    o,
		queue: workqueue.New(workqueue.Options[K]{
			Name: name, RateLimiter: o.RateLimiter, Metrics: o.Metrics, Order: o.Order,
		}),
		took: latency.New(durations),
		rooms: rooms[K]{
			deadlines: deadline.New(deadline.Limits{Hung: o.HungAfter}),
			forbidden: forbidden.Permissions[K]{},
			hotloop:   hotloop.New[K](name, whyRequeue),
		},
		keys: newTable[K](
			debounce.Limits{Interval: o.MinInterval, Quiet: o.Debounce, Longest: o.MaxDebounce}.WithDefaults(),
		),
	}
}

func (c *engine[K]) Name() string { return c.name }

// Add is how all keys come into the queue that events and users add.
func (c *engine[K]) Add(key K, o workqueue.AddOptions) {
	c.stats.Adds.Add(1)
	if c.keys.limits.Quiet > 0 && o.After <= 0 && !o.RateLimited {
		now := time.Now()
		c.mu.Lock()
		c.keys.obtain(key).debounce.Heard(now)
		c.mu.Unlock()
	}
	c.queue.AddWith(key, o)
}

func (c *engine[K]) Run(ctx context.Context) error {
	if c.wrong != nil {
		return fmt.Errorf("controller %q: %w", c.name, c.wrong)
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
		c.rooms.deadlines.Run(intake, &c.mu, func(now time.Time) { c.passDeadlines(intake, now) })
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
	idle := make(chan struct{}) // closed below when all workers have returned; nobody sends
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

// drain waits until idle is closed: first with work alive, then, when work is cancelled, a little more.
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

// The methods below, and Add, are loop.Handle: what package multicluster does with a controller.

func init() {
	loop.Provide(func(controller any) any { return controller.(interface{ handle() any }).handle() })
}

func (c *engine[K]) Set(s loop.Settings[K]) {
	c.rooms.outer = s
	c.rooms.deadlines = deadline.New(deadline.Limits{Slow: s.SlowAfter, Hung: c.options.HungAfter})
}

func (c *engine[K]) Hung() map[K]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	hung := map[K]time.Time{}
	for _, e := range c.keys.running {
		if e.run.Hung {
			hung[e.key] = e.run.Began
		}
	}
	return hung
}

func (c *engine[K]) Forget(key K) {
	c.mu.Lock()
	e := c.keys.entries[key]
	runs := e != nil && e.place != none
	if runs {
		e.forgotten = true
	}
	c.mu.Unlock()
	if !runs {
		c.forgotten(key)
	}
}

// ForgetAll implements loop.Handle. Keys in flight come first: what one leaves behind that ends after that goes with
// its end.
func (c *engine[K]) ForgetAll(match func(key K) bool) {
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.keys.entries))
	c.mu.Unlock()
	for _, key := range keys {
		if match(key) {
			c.Forget(key)
		}
	}
	c.queue.CancelDelays(slices.DeleteFunc(c.queue.Delayed(), func(key K) bool { return !match(key) })...)
}
