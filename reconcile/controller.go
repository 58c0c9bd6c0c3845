package reconcile

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Controller runs a [Reconciler]. It owns a queue, which its sources fill with keys, and reconciles these keys.
//
// Concurrency: all methods may be called from any goroutine, Run once. The controller holds its lock only for short
// lookups. It holds no lock when it calls a source, a reconciler, or a method of a key.
type Controller[K comparable] struct {
	engine controller[K]
}

// controller is the part of an [engine] that a [Controller] uses.
//
// It is an interface so that importers compile fast: a package that mentions a type compiles, once more, all methods of
// each instantiated generic type that the type reaches through fields and method signatures. Only packages that call
// [New] compile the loop and the queue again. See docs/decisions/0010-light-types.md.
type controller[K comparable] interface {
	Name() string
	Watch(s Source[K]) error
	Add(key K, o workqueue.AddOptions)
	Forget(key K)
	ForgetFunc(match func(key K) bool)
	Run(ctx context.Context) error
	Warmup(ctx context.Context) error
	Health() error
	Alive() error
	Stats() Stats
	Work() Work
	InFlight() []string
	Hung() map[K]time.Time
	View(limit int) workqueue.View[string]
	Left(limit int) []string
	SelfTriggered() error
}

// New returns a controller. Nothing runs before [Controller.Run], which also returns what is wrong with the arguments.
//
// The name must be unique among the controllers whose metrics are read together. It consists of letters, digits and,
// between them, - _ . / : because it stands in logs, metrics and URLs.
func New[K comparable](name string, r Reconciler[K], o Options[K]) *Controller[K] {
	return &Controller[K]{newEngine(name, r, o)}
}

// Name returns the name given to [New].
func (c *Controller[K]) Name() string { return c.engine.Name() }

// Watch adds a source. The sources added before Run are synced before the first key is reconciled. A source added to a
// running controller starts at once.
func (c *Controller[K]) Watch(s Source[K]) error { return c.engine.Watch(s) }

// Enqueue queues key at once, for a reason outside the sources.
func (c *Controller[K]) Enqueue(key K) {
	c.EnqueueWith(key, workqueue.AddOptions{
		Cause: workqueue.Cause{Source: "manual", Event: "Enqueue", Time: time.Now()},
	})
}

// EnqueueAfter queues key after d, for a reason outside the sources.
func (c *Controller[K]) EnqueueAfter(key K, d time.Duration) {
	cause := workqueue.Cause{Source: "manual", Event: "EnqueueAfter", Time: time.Now()}
	c.EnqueueWith(key, workqueue.AddOptions{After: d, Cause: cause})
}

// EnqueueWith queues key with any options, for example a priority or a cause.
func (c *Controller[K]) EnqueueWith(key K, o workqueue.AddOptions) { c.engine.Add(key, o) }

// Forget drops what the controller remembers about key: its failures, its backoff, and the run that its last reconcile
// asked for. If the key is being reconciled, this happens when that reconcile ends, whatever its result. A key that is
// ready still runs, and so does one that waits for an AddAfter.
func (c *Controller[K]) Forget(key K) { c.engine.Forget(key) }

// ForgetFunc calls Forget for all keys that match, and also cancels their pending AddAfter. Call it when a whole group
// of keys is gone, for example those of a tenant. match is called without a lock. To keep keys that are ready from
// running, use Options.Admit.
func (c *Controller[K]) ForgetFunc(match func(key K) bool) { c.engine.ForgetFunc(match) }

// Run starts the sources, waits until they are synced, and reconciles until ctx is done. Then it drains, as the package
// comment describes. It may be called once.
//
// Errors: nil after a stop in which every reconcile ended; [StuckError] if one did not; the error of a source that
// failed; [ErrStopped] if it is called again; what is wrong with the arguments of [New].
func (c *Controller[K]) Run(ctx context.Context) error { return c.engine.Run(ctx) }

// Warmup runs the sources that can be run twice (see [Source]) before Run is called, and holds back the keys that they
// add. Run then does not have to wait for these sources, and begins with the objects that changed last. Warmup
// reconciles nothing, and the queue stays empty. The number of keys held back is bounded; see Options.EnableWarmup.
//
// It returns when ctx is done, which must not be before the context of Run is; when Run has returned; or at once, if
// Run was called before or no source can be run twice. If it returns before Run is called, Run starts without it.
//
// Errors: the error of a source that failed, unless Run returns it.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller, for the name.
func (c *Controller[K]) Warmup(ctx context.Context) error { return c.engine.Warmup(ctx) }

// Health returns nil if the controller reconciles, or could at once, and no key is in trouble. Otherwise the error
// names the sources that are not synced, and the keys that hang or fail. During [Controller.Warmup] it is about the
// sources that run then.
func (c *Controller[K]) Health() error { return c.engine.Health() }

// Alive returns nil while Run runs, unless the last reconciles all panicked. Unlike [Controller.Health] it ignores the
// state of sources and of single keys.
func (c *Controller[K]) Alive() error { return c.engine.Alive() }

// Stats returns a snapshot of the counters. It is cheap: one lock, held for the copy.
func (c *Controller[K]) Stats() Stats { return c.engine.Stats() }

// Work returns what is left to do. Its cost grows with the number of delayed keys. Callers that wait for the end of the
// work look at Stats first.
func (c *Controller[K]) Work() Work { return c.engine.Work() }

// InFlight returns the keys that are being reconciled and how long each has been running, sorted.
func (c *Controller[K]) InFlight() []string { return c.engine.InFlight() }

// Hung returns the keys whose reconcile has been running for longer than Options.HungAfter, and when it began.
func (c *Controller[K]) Hung() map[K]time.Time { return c.engine.Hung() }

// View returns the contents of the queue, at most limit keys of each kind. The Time of a key that is processed is how
// long its reconcile has been running. The Time of a ready key is set if Options.Metrics is.
func (c *Controller[K]) View(limit int) workqueue.View[string] { return c.engine.View(limit) }

// Left returns at most limit keys that are ready or in flight, sorted. After Run has returned they are the keys that it
// left to the next process. It leaves out keys that wait for their time; see [Controller.Work].
func (c *Controller[K]) Left(limit int) []string { return c.engine.Left(limit) }

// SelfTriggered returns a [SelfTriggeredError] if a key has been found to trigger itself, or nil.
func (c *Controller[K]) SelfTriggered() error { return c.engine.SelfTriggered() }
