package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/internal/loop/backlog"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile/internal/feed"
	"github.com/flyball-dev/flyball/workqueue"
)

// Source feeds keys into a controller. Package source has implementations.
type Source[K comparable] interface {
	// Run feeds out until ctx is done. It calls synced once, when everything that was there at the start
	// has been fed, and before it returns it removes whatever it has registered elsewhere. Returning
	// early with nil is fine for a source that has no more to say; an error stops the controller.
	Run(ctx context.Context, out *Sink[K], synced func()) error
	// Health is nil, or the reason why the source has nothing to feed yet, in words for people.
	Health() error
	// String names the source in logs and causes, for example "pods".
	String() string
	// Repeats reports whether the source feeds everything again when it is run again, as a source of a cache does. Such
	// a source also runs before the controller does ([Controller.Warmup]), and what it fed then may be forgotten.
	Repeats() bool
}

// Enqueuer puts keys into a controller's queue, each with the cause of the event being handled.
// It is valid for the time of the call it was given to.
type Enqueuer[K comparable] interface {
	// Add queues key at once.
	Add(key K)
	// AddAfter queues key after d. The delay survives an Add of the same key in the meantime.
	AddAfter(key K, d time.Duration)
	// AddRateLimited queues key after the backoff of its failures.
	AddRateLimited(key K)
	// AddWith queues key with any options, for example a priority. If o has no cause, the cause is the event. If o has
	// no priority and the event is about an object that has not changed, the priority is workqueue.LowPriority; the
	// methods above do the same.
	AddWith(key K, o workqueue.AddOptions)
}

// Sink is a controller's queue as a [Source] sees it.
type Sink[K comparable] struct {
	controller string
	// enqueuer returns that of a feed.Intake.
	enqueuer func(cause workqueue.Cause, changed bool) Enqueuer[K]
}

// String returns the name of the controller.
func (s *Sink[K]) String() string { return s.controller }

// For returns an [Enqueuer] whose keys carry cause.
func (s *Sink[K]) For(cause workqueue.Cause) Enqueuer[K] { return s.enqueuer(cause, true) }

// ForUnchanged is For, for an object that has not changed: it is one of the first list, or of a resync. Keys of objects
// that have changed are reconciled first.
func (s *Sink[K]) ForUnchanged(cause workqueue.Cause) Enqueuer[K] { return s.enqueuer(cause, false) }

func (c *engine[K]) Watch(s Source[K]) error {
	if misuse.IsNil(s) {
		return fmt.Errorf("controller %s: watch: the source is nil: package source has constructors", c.name)
	}
	if !c.feeds.Add(fed[K]{s, c}) {
		return fmt.Errorf("controller %s: watch %s: %w", c.name, s, ErrStopped)
	}
	return nil
}

// fed is a source as package feed runs it.
type fed[K comparable] struct {
	Source[K]
	controller *engine[K]
}

func (f fed[K]) Run(ctx context.Context, held *backlog.Backlog[K, workqueue.Cause], synced func()) error {
	in := feed.NewIntake[K](ctx, f.controller, &f.controller.stats, held)
	enqueuer := func(c workqueue.Cause, changed bool) Enqueuer[K] { return in.Enqueuer(c, changed) }
	if err := f.Source.Run(ctx, &Sink[K]{f.controller.name, enqueuer}, synced); err != nil {
		return fmt.Errorf("controller %s: %w", f.controller.name, err)
	}
	return nil
}
