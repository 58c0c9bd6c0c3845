package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

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

// Controller runs a [Reconciler]: it owns the queue, feeds it from its sources, and works it off.
//
// Concurrency: all methods may be called from any goroutine; Run once. The controller's lock is held for no longer
// than it takes to look something up, and nothing that a user wrote is called under it: no source, no reconciler, no
// method of a key.
type Controller[K comparable] struct {
	name string
	// wrong is what was wrong with the arguments of New, for Run to return.
	wrong      error
	reconciler Reconciler[K]
	options    Options[K]
	queue      *workqueue.Queue[K]
	stats      counters.Live
	observe    func(took time.Duration) // told of every reconcile
	rooms      rooms[K]                 // deadlines and forbidden are guarded by mu

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

// New makes a controller with the given name, which must be unique among those whose metrics are read together; it
// consists of letters, digits and, between them, - _ . / : (it stands in logs, metrics and URLs). Nothing runs before
// [Controller.Run], which also returns what is wrong with the arguments.
func New[K comparable](name string, r Reconciler[K], o Options[K]) *Controller[K] {
	if o.Workers <= 0 {
		o.Workers = 1
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = defaultDrainTimeout
	}
	if o.HungAfter == 0 {
		o.HungAfter = defaultPatience
	}
	if o.FailingAfter == 0 {
		o.FailingAfter = defaultPatience
	}
	return &Controller[K]{
		name:       name,
		wrong:      errors.Join(misuse.Name(name), misuse.Nil("the reconciler", r)),
		reconciler: r,
		options:    o,
		queue: workqueue.New(workqueue.Options[K]{
			Name: name, RateLimiter: o.RateLimiter, Metrics: o.Metrics, Order: o.Order,
		}),
		observe: observer(name, o.Metrics),
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

// Name is the name given to [New].
func (c *Controller[K]) Name() string { return c.name }

// Enqueue queues key at once, for a reason that is outside the sources.
func (c *Controller[K]) Enqueue(key K) {
	c.enqueue(key, workqueue.AddOptions{Cause: workqueue.Cause{Source: "manual", Event: "Enqueue", Time: time.Now()}})
}

// EnqueueAfter queues key after d, for a reason that is outside the sources.
func (c *Controller[K]) EnqueueAfter(key K, d time.Duration) {
	cause := workqueue.Cause{Source: "manual", Event: "EnqueueAfter", Time: time.Now()}
	c.enqueue(key, workqueue.AddOptions{After: d, Cause: cause})
}

// enqueue is how all keys come into the queue that events and users add.
func (c *Controller[K]) enqueue(key K, o workqueue.AddOptions) {
	c.stats.Adds.Add(1)
	if c.keys.limits.Quiet > 0 && o.After <= 0 && !o.RateLimited {
		now := time.Now()
		c.mu.Lock()
		c.keys.obtain(key).debounce.Heard(now)
		c.mu.Unlock()
	}
	c.queue.AddWith(key, o)
}

// Run feeds the queue from the sources, waits until those it started with are synced, and reconciles until
// ctx is done; then it drains, as the package comment says. It may be called once.
//
// Errors: nil after a stop in which everything in flight ended; [StuckError] if something did not; that of
// a source that failed; [ErrStopped] when called again; what is wrong with the arguments of [New].
func (c *Controller[K]) Run(ctx context.Context) error {
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

// Warmup runs the sources that feed everything anew when they are run again (see [Source]), and holds back the keys
// that they add until Run is called. Run then need not wait for them, and begins with what changed last. Warmup
// reconciles nothing, and the queue stays empty. What is held back is bounded; see Options.EnableWarmup.
//
// It returns when ctx is done, which must not be before that of Run is; when Run has returned; or at once, when Run
// was called before or there is nothing to do. If it returned before Run was called, Run starts without it.
//
// Errors: that of a source that failed, unless Run returns it.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller, for the name.
func (c *Controller[K]) Warmup(ctx context.Context) error {
	if on := c.options.EnableWarmup; on != nil && !*on {
		return nil
	}
	return c.feeds.Warmup(klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "controller", c.name)))
}

// drain waits until idle is closed: first with work alive, then, when work is cancelled, a little more.
func (c *Controller[K]) drain(work context.Context, idle <-chan struct{}) error {
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
