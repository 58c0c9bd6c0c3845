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
// It is an interface so that importers compile fast. A package that mentions a type compiles all methods of every
// instantiated generic type that this type reaches through its fields and method signatures. Only packages that call
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

// New returns a controller. Nothing runs before [Controller.Run]. If an argument is invalid, Run returns the error.
//
// The name appears in logs, metrics and URLs. It must be unique among the controllers whose metrics are read together.
// It consists of letters and digits, with - _ . / : between them.
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

// Forget drops what the controller remembers about key: its failures, its backoff, and a further run that its last
// reconcile asked for. If the key is being reconciled, Forget takes effect when that reconcile ends, whatever its
// result. Forget does not cancel a key that is ready, or that waits for the delay of an AddAfter.
func (c *Controller[K]) Forget(key K) { c.engine.Forget(key) }

// ForgetFunc calls Forget for all keys that match, and also cancels their pending AddAfter. Call it when a whole group
// of keys is gone, for example those of a tenant. match is called without a lock. To keep keys that are ready from
// running, use Options.Admit.
func (c *Controller[K]) ForgetFunc(match func(key K) bool) { c.engine.ForgetFunc(match) }

// Run starts the sources, waits until they are synced, and reconciles until ctx is done. Then it drains, as the package
// comment describes. It may be called once.
//
// Errors: nil after a stop in which every reconcile ended; [StuckError] if one did not; the error of a source that
// failed; [ErrStopped] if Run is called again; an error that describes an invalid argument of [New].
func (c *Controller[K]) Run(ctx context.Context) error { return c.engine.Run(ctx) }

// Warmup runs the sources that repeat (see [Source]) before Run is called, and holds back the keys that they add. Run
// then need not wait for these sources, and begins with the objects that changed during the warm-up. Warmup reconciles
// nothing, and the queue stays empty. The number of keys held back is bounded; see Options.EnableWarmup.
//
// Warmup returns when ctx is done or when Run has returned. ctx must not end before the context of Run. Warmup returns
// at once if Run was called before, or if no source repeats. If Warmup returns before Run is called, the warm-up has no
// effect.
//
// Errors: the error of a source that failed, unless Run returns that error.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller, for the name.
func (c *Controller[K]) Warmup(ctx context.Context) error { return c.engine.Warmup(ctx) }

// Health returns nil if the controller is running, its sources are synced, and no key is in trouble. Otherwise the
// error names the sources that are not synced, and the keys that hang or have been failing for long. During
// [Controller.Warmup], Health is about the sources that run then.
func (c *Controller[K]) Health() error { return c.engine.Health() }

// Alive returns nil while Run runs, unless the last reconciles all panicked. Unlike [Controller.Health] it ignores the
// state of sources and of single keys.
func (c *Controller[K]) Alive() error { return c.engine.Alive() }

// Stats returns a snapshot of the counters. It is cheap: one lock, held for the copy.
func (c *Controller[K]) Stats() Stats { return c.engine.Stats() }

// Work returns what is left to do. Its cost grows with the number of delayed keys. Callers that poll for the end of the
// work should look at Stats first.
func (c *Controller[K]) Work() Work { return c.engine.Work() }

// InFlight returns the keys that are being reconciled and how long each has been running, sorted.
func (c *Controller[K]) InFlight() []string { return c.engine.InFlight() }

// Hung returns the keys whose reconcile has been running for longer than Options.HungAfter, and when it began.
func (c *Controller[K]) Hung() map[K]time.Time { return c.engine.Hung() }

// View returns the contents of the queue, at most limit keys of each kind. For a key that is being processed, Time is
// how long its reconcile has been running. For a ready key, Time is set only if Options.Metrics is set.
func (c *Controller[K]) View(limit int) workqueue.View[string] { return c.engine.View(limit) }

// Left returns at most limit keys that are ready or in flight, sorted. After Run has returned, these are the keys that
// it leaves to the next process. Left does not return delayed keys; see [Controller.Work].
func (c *Controller[K]) Left(limit int) []string { return c.engine.Left(limit) }

// SelfTriggered returns a [SelfTriggeredError] if a key has been found to trigger itself, or nil.
func (c *Controller[K]) SelfTriggered() error { return c.engine.SelfTriggered() }
