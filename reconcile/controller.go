package reconcile

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/workqueue"
)

// Controller runs a [Reconciler]: it owns the queue, feeds it from its sources, and works it off.
//
// Concurrency: all methods may be called from any goroutine; Run once.
type Controller[K comparable] struct {
	name string
	// wrong is what was wrong with the arguments of New, for Run to return.
	wrong          error
	reconciler     Reconciler[K]
	options        Options[K]
	queue          *workqueue.Queue[K]
	stats          counters
	pace           *pacer[K] // nil when keys are not paced
	failures       failures[K]
	refusals       refusals[K]
	contradictions contradictions[K]
	observe        func(took time.Duration) // told of every reconcile
	restless       restless[K]              // guarded by mu

	mu sync.Mutex
	// feeds holds every source given to Watch and not taken away.
	// Invariant: while running, each has a goroutine; before, in a round of Warmup, those have that are Repeaters.
	feeds []*feed[K]
	// inFlight holds the start of every reconcile that is running. Invariant: its keys are those for
	// which the queue has handed out an item and Done has not been called.
	inFlight map[K]time.Time
	// discarded are those of them that are to be forgotten when they end.
	discarded map[K]struct{}
	// peak is the most there ever were in inFlight.
	peak int
	// failing holds, of every key that is being retried, when it failed first since it last succeeded.
	failing map[K]time.Time
	phase   phase
	// start runs a source's goroutine. Invariant: not nil exactly while running, or in a round.
	start func(*feed[K])
	// stop ends Run with an error. Invariant: nil exactly before Run.
	stop context.CancelCauseFunc
	// round is that of Warmup; nil when there is none, and when Run has its keys.
	round *round[K]
}

// phase is where a controller is in its life; it only moves forward.
type phase int

const (
	created phase = iota
	running       // Run accepts new sources
	stopped       // Run has been told to end, or has ended
)

// feed is a source and the goroutine that runs it.
type feed[K comparable] struct {
	source Source[K]
	cancel context.CancelFunc // set when the goroutine starts
	synced chan struct{}      // closed by the source's goroutine, once; capacity 0
	gone   chan struct{}      // closed when the source's goroutine has ended; capacity 0
}

func newFeed[K comparable](s Source[K]) *feed[K] {
	return &feed[K]{source: s, synced: make(chan struct{}), gone: make(chan struct{})}
}

// New makes a controller with the given name, which must be unique among those whose metrics are read
// together; it consists of letters, digits and, between them, - _ . / : (it stands in logs, metrics and URLs). Nothing runs before
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
		queue:      workqueue.New(workqueue.Options[K]{Name: name, RateLimiter: o.RateLimiter, Metrics: o.Metrics, Order: o.Order}),
		observe:    observer(name, o.Metrics),
		pace:       newPacer(o),
		inFlight:   make(map[K]time.Time),
		discarded:  make(map[K]struct{}),
		failing:    make(map[K]time.Time),
		restless:   restless[K]{seed: maphash.MakeSeed()},
	}
}

// Name is the name given to [New].
func (c *Controller[K]) Name() string { return c.name }

// Enqueue queues key at once, for a reason that is outside the sources.
func (c *Controller[K]) Enqueue(key K) {
	c.stats.adds.Add(1)
	c.pace.heard(key)
	c.queue.AddWithCause(key, workqueue.Cause{Source: "manual", Event: "Enqueue", Time: time.Now()})
}

// EnqueueAfter queues key after d, for a reason that is outside the sources.
func (c *Controller[K]) EnqueueAfter(key K, d time.Duration) {
	c.stats.adds.Add(1)
	c.queue.AddWith(key, workqueue.AddOptions{After: d, Cause: workqueue.Cause{Source: "manual", Event: "EnqueueAfter", Time: time.Now()}})
}

// Watch adds a source. A source added before Run is synced before the first key is reconciled; one added
// to a running controller starts at once.
func (c *Controller[K]) Watch(s Source[K]) error {
	if misuse.IsNil(s) {
		return fmt.Errorf("controller %s: watch: the source is nil: Kind, FactoryKind, Chan and Every make some", c.name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == stopped {
		return fmt.Errorf("controller %s: watch %s: %w", c.name, s, ErrStopped)
	}
	f := newFeed(s)
	c.feeds = append(c.feeds, f)
	if c.start != nil {
		c.start(f)
	}
	return nil
}

// Unwatch takes a source away and returns when it has let go of what it had registered.
//
// Errors: one that says so, if the source is not watched; that of ctx.
func (c *Controller[K]) Unwatch(ctx context.Context, s Source[K]) error {
	if misuse.IsNil(s) {
		return fmt.Errorf("controller %s: stop watching: the source is nil", c.name)
	}
	f := c.takeFeed(s)
	if f == nil {
		return fmt.Errorf("controller %s: %s is not watched", c.name, s)
	}
	if f.cancel == nil {
		return nil
	}
	f.cancel()
	select {
	case <-f.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("controller %s: stop watching %s: %w", c.name, s, context.Cause(ctx))
	}
}

func (c *Controller[K]) takeFeed(s Source[K]) *feed[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, f := range c.feeds {
		if f.source == s {
			c.feeds = append(c.feeds[:i:i], c.feeds[i+1:]...)
			return f
		}
	}
	return nil
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

	if err := c.enter(stop); err != nil {
		return err
	}
	var sources, workers sync.WaitGroup
	warm := c.takeOver()
	initial := c.startSources(intake, stop, &sources)
	sources.Go(func() { c.watchHung(intake) })
	if waitSynced(intake, initial) {
		logger.Info("Starting workers", "workers", c.options.Workers)
		for range c.options.Workers {
			workers.Go(func() {
				for c.processNextWorkItem(intake, work) {
				}
			})
		}
		if warm != nil {
			c.pour(warm)
		}
	}
	<-intake.Done()
	c.endIntake()
	if warm != nil {
		warm.cancel(nil)
		sources.Go(func() { <-warm.ended })
	}
	idle := make(chan struct{}) // closed below when all workers have returned; nobody sends
	go func() { workers.Wait(); close(idle) }()
	stuck := c.drain(work, idle)
	sources.Wait()
	c.queue.ShutDown()
	if cause := context.Cause(intake); ctx.Err() == nil {
		return errors.Join(cause, stuck)
	}
	logger.Info("Stopped", "queued", c.queue.Len(), "left", c.Left(mostLeftInLog))
	return stuck
}

// enter moves to running. stop ends Run.
func (c *Controller[K]) enter(stop context.CancelCauseFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != created {
		return fmt.Errorf("controller %s: run: %w", c.name, ErrStopped)
	}
	c.phase, c.stop = running, stop
	return nil
}

// startSources starts a goroutine per source that has none, in sources, and returns all there are. A source's error stops the
// controller through stop.
func (c *Controller[K]) startSources(ctx context.Context, stop context.CancelCauseFunc, sources *sync.WaitGroup) []*feed[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = c.starter(ctx, stop, sources, nil)
	for _, f := range c.feeds {
		if f.cancel == nil {
			c.start(f)
		}
	}
	return append([]*feed[K](nil), c.feeds...)
}

// waitSynced returns true when every feed is synced, or was taken away, and false when ctx is done first.
func waitSynced[K comparable](ctx context.Context, feeds []*feed[K]) bool {
	for _, f := range feeds {
		select {
		case <-f.synced:
		case <-f.gone:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// endIntake refuses further sources.
func (c *Controller[K]) endIntake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.start = stopped, nil
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
		return c.stuck()
	}
}

// Stats is a snapshot of the counters. It costs one lock, held for no more than the copy.
func (c *Controller[K]) Stats() Stats {
	c.mu.Lock()
	inFlight, peak, held := len(c.inFlight), c.peak, 0
	if c.round != nil {
		held = c.round.backlog.size()
	}
	c.mu.Unlock()
	return Stats{
		Events:   c.stats.events.Load(),
		Adds:     c.stats.adds.Load(),
		Syncs:    c.stats.syncs.Load(),
		Done:     c.stats.done.Load(),
		Requeues: c.stats.requeues.Load(),
		Errors:   c.stats.errors.Load(),
		Terminal: c.stats.terminal.Load(),
		Timeouts: c.stats.timeouts.Load(),
		Panics:   c.stats.panics.Load(),
		Retries:  c.stats.retries.Load(),
		Dropped:  c.stats.dropped.Load(),
		Stale:    c.stats.stale.Load(),
		Hung:     c.stats.hung.Load(),
		Deferred: c.stats.deferred.Load(),
		Workers:  c.options.Workers,
		InFlight: inFlight,
		Peak:     peak,
		Queued:   c.queue.Len(),
		Held:     held,
	}
}

// Health is nil when the controller reconciles, or could at once, and its keys do well; else it says what it waits for, and
// which keys hang or fail. In [Controller.Warmup] it is about the sources that run then.
func (c *Controller[K]) Health() error {
	c.mu.Lock()
	feeds, now, warming := append([]*feed[K](nil), c.feeds...), c.phase, c.phase == created && c.round != nil
	c.mu.Unlock()
	if now != running && !warming {
		return fmt.Errorf("controller %s: not running", c.name)
	}
	waiting := c.unwell()
	for _, f := range feeds {
		if warming && !Repeats(f.source) {
			continue
		}
		select {
		case <-f.synced:
		default:
			if err := f.source.Health(); err != nil {
				waiting = append(waiting, err)
			} else {
				waiting = append(waiting, fmt.Errorf("%s: the initial objects are still being handled", f.source))
			}
		}
	}
	return errors.Join(waiting...)
}
