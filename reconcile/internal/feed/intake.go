package feed

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/reconcile/internal/counters"
	"github.com/flyball-dev/flyball/workqueue"
)

// Controller is the part of a controller that an [Intake] uses.
type Controller[K comparable] interface {
	Name() string
	// Add counts key and queues it.
	Add(key K, o workqueue.AddOptions)
	// Subject returns the name of key in traces.
	Subject(key K) trace.Subject
}

// Intake adds the keys of one run of a source to the queue of a controller, or to a backlog.
type Intake[K comparable] struct {
	controller Controller[K]
	stats      *counters.Live
	// held is the backlog of a warm-up run. It is nil if there is none, or if the backlog was flushed: then keys go
	// into the queue.
	held  atomic.Pointer[backlog.Backlog[K, workqueue.Cause]]
	trace *trace.Recorder // nil if tracing is off
}

// NewIntake returns an Intake that adds keys to held, or to the queue of c if held is nil or was flushed. ctx is the
// context of the source.
func NewIntake[K comparable](ctx context.Context, c Controller[K], stats *counters.Live,
	held *backlog.Backlog[K, workqueue.Cause],
) *Intake[K] {
	in := &Intake[K]{controller: c, stats: stats, trace: trace.From(ctx)}
	in.held.Store(held)
	return in
}

// Enqueuer returns an [Enqueuer] for one event. changed reports whether the object of the event has changed.
func (in *Intake[K]) Enqueuer(cause workqueue.Cause, changed bool) *Enqueuer[K] {
	in.stats.Events.Add(1)
	e := &Enqueuer[K]{intake: in, cause: cause, changed: changed}
	if in.trace != nil {
		e.handled = in.trace.Handled(in.controller.Name(), (*trace.Cause)(&e.cause))
	}
	return e
}

// Enqueuer implements reconcile.Enqueuer.
type Enqueuer[K comparable] struct {
	intake  *Intake[K]
	cause   workqueue.Cause
	changed bool
	handled trace.Place // where the trace has the event
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

// AddWith implements reconcile.Enqueuer.
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
		in.held.Store(nil) // The backlog was flushed, so the controller is running.
	}
	in.controller.Add(key, o)
}
