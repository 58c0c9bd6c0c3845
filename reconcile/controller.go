package reconcile

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/internal/loop"
	"github.com/flyball-dev/flyball/workqueue"
)

// Controller runs a [Reconciler]: it owns the queue, feeds it from its sources, and works it off.
//
// Concurrency: all methods may be called from any goroutine; Run once. The controller's lock is held for no longer
// than it takes to look something up, and nothing that a user wrote is called under it: no source, no reconciler, no
// method of a key.
type Controller[K comparable] struct {
	engine controller[K]
}

// controller has what a [Controller] needs of its [engine].
//
// It is an interface so that importers compile fast: a package that mentions a type compiles, once more, all methods of
// each instantiated generic type that the type reaches through fields and method signatures. Only packages that call
// [New] compile the loop and the queue again. See docs/decisions/0010-light-types.md.
type controller[K comparable] interface {
	loop.Handle[K, workqueue.AddOptions]
	Name() string
	Watch(s Source[K]) error
	Run(ctx context.Context) error
	Warmup(ctx context.Context) error
	Health() error
	Stats() Stats
	Work() Work
	InFlight() []string
	View(limit int) workqueue.View[string]
	Left(limit int) []string
	SelfTriggered() error
}

// New makes a controller with the given name, which must be unique among those whose metrics are read together; it
// consists of letters, digits and, between them, - _ . / : (it stands in logs, metrics and URLs). Nothing runs before
// [Controller.Run], which also returns what is wrong with the arguments.
func New[K comparable](name string, r Reconciler[K], o Options[K]) *Controller[K] {
	return &Controller[K]{newEngine(name, r, o)}
}

// Name is the name given to [New].
func (c *Controller[K]) Name() string { return c.engine.Name() }

// Watch adds a source. A source added before Run is synced before the first key is reconciled; one added
// to a running controller starts at once.
func (c *Controller[K]) Watch(s Source[K]) error { return c.engine.Watch(s) }

// Enqueue queues key at once, for a reason that is outside the sources.
func (c *Controller[K]) Enqueue(key K) {
	c.engine.Add(key, workqueue.AddOptions{
		Cause: workqueue.Cause{Source: "manual", Event: "Enqueue", Time: time.Now()},
	})
}

// EnqueueAfter queues key after d, for a reason that is outside the sources.
func (c *Controller[K]) EnqueueAfter(key K, d time.Duration) {
	cause := workqueue.Cause{Source: "manual", Event: "EnqueueAfter", Time: time.Now()}
	c.engine.Add(key, workqueue.AddOptions{After: d, Cause: cause})
}

// Run feeds the queue from the sources, waits until those it started with are synced, and reconciles until
// ctx is done; then it drains, as the package comment says. It may be called once.
//
// Errors: nil after a stop in which everything in flight ended; [StuckError] if something did not; that of
// a source that failed; [ErrStopped] when called again; what is wrong with the arguments of [New].
func (c *Controller[K]) Run(ctx context.Context) error { return c.engine.Run(ctx) }

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
func (c *Controller[K]) Warmup(ctx context.Context) error { return c.engine.Warmup(ctx) }

// Health is nil when the controller reconciles, or could at once, and its keys do well; else it names what it waits
// for, and which keys hang or fail. In [Controller.Warmup] it is about the sources that run then.
func (c *Controller[K]) Health() error { return c.engine.Health() }

// Stats is a snapshot of the counters. It costs one lock, held for no more than the copy.
func (c *Controller[K]) Stats() Stats { return c.engine.Stats() }

// Work tells what there is to do. It costs as much as there are delayed keys: ask after Stats says that nothing else
// is left.
func (c *Controller[K]) Work() Work { return c.engine.Work() }

// InFlight names the keys that are being reconciled at this moment, with the time each has been running, sorted. How
// many there are is in [Stats], too.
func (c *Controller[K]) InFlight() []string { return c.engine.InFlight() }

// View returns what is in the queue, at most limit keys of each kind, as text. The Time of keys that are processed is
// how long their reconcile has been running; that of ready ones is set if Options.Metrics is.
func (c *Controller[K]) View(limit int) workqueue.View[string] { return c.engine.View(limit) }

// Left returns the keys that are queued or in flight, sorted, at most limit of them: after Run has returned, those
// that were left to the next process. Keys that wait for their time are in [Controller.Work].
func (c *Controller[K]) Left(limit int) []string { return c.engine.Left(limit) }

// SelfTriggered is a [SelfTriggeredError], when a key of the controller has been found to trigger itself; else nil.
func (c *Controller[K]) SelfTriggered() error { return c.engine.SelfTriggered() }

// handle returns a loop.Handle.
func (c *Controller[K]) handle() any { return c.engine }
