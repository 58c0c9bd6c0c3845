package feed

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/loop/backlog"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/reconcile/internal/counters"
	"github.com/flyball-dev/flyball/workqueue"
)

// Controller is what an [Intake] needs of a controller.
type Controller[K comparable] interface {
	Name() string
	// Add counts key and queues it.
	Add(key K, o workqueue.AddOptions)
	// Subject names key in what is recorded.
	Subject(key K) trace.Subject
}

// Intake puts the keys of one run of a source into the queue of a controller, or into a backlog.
type Intake[K comparable] struct {
	controller Controller[K]
	stats      *counters.Live
	// held holds the keys back while nobody works; nil when somebody does.
	held  atomic.Pointer[backlog.Backlog[K, workqueue.Cause]]
	trace *trace.Recorder // nil if nobody wants to know
}

// NewIntake returns the intake of a run with the context ctx. The keys go into held, unless that is nil or was flushed.
func NewIntake[K comparable](ctx context.Context, c Controller[K], stats *counters.Live,
	held *backlog.Backlog[K, workqueue.Cause],
) *Intake[K] {
	in := &Intake[K]{controller: c, stats: stats, trace: trace.From(ctx)}
	in.held.Store(held)
	return in
}

// Enqueuer returns an [Enqueuer] for one event. changed reports whether the event says that something changed.
func (in *Intake[K]) Enqueuer(cause workqueue.Cause, changed bool) *Enqueuer[K] {
	in.stats.Events.Add(1)
	e := &Enqueuer[K]{intake: in, cause: cause, changed: changed}
	if in.trace != nil {
		e.handled = in.trace.Handled(in.controller.Name(), (*trace.Cause)(&e.cause))
	}
	return e
}

// Enqueuer is a reconcile.Enqueuer.
type Enqueuer[K comparable] struct {
	intake  *Intake[K]
	cause   workqueue.Cause
	changed bool
	handled trace.Place // where the event is recorded
}

// Add implements reconcile.Enqueuer.
func (e *Enqueuer[K]) Add(key K) { e.AddWith(key, workqueue.AddOptions{}) }

// AddAfter implements reconcile.Enqueuer.
func (e *Enqueuer[K]) AddAfter(key K, d time.Duration) {
	e.AddWith(key, workqueue.AddOptions{After: d})
}

// AddRateLimited implements reconcile.Enqueuer.
func (e *Enqueuer[K]) AddRateLimited(key K) { e.AddWith(key, workqueue.AddOptions{RateLimited: true}) }

var lowPriority = workqueue.LowPriority

// AddWith implements reconcile.Enqueuer. It queues the key, or has it held back.
func (e *Enqueuer[K]) AddWith(key K, o workqueue.AddOptions) {
	in := e.intake
	if o.Cause == (workqueue.Cause{}) {
		o.Cause = e.cause
	}
	if o.Priority == nil && !e.changed {
		o.Priority = &lowPriority
	}
	if in.trace != nil {
		in.trace.Queued(e.handled, in.controller.Subject(key), o.After)
	}
	if held := in.held.Load(); held != nil {
		if held.Add(key, backlog.Options[workqueue.Cause](o), e.changed) {
			in.stats.Adds.Add(1)
			return
		}
		in.held.Store(nil) // Somebody works now.
	}
	in.controller.Add(key, o)
}
