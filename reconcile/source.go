package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile/internal/feed"
	"github.com/flyball-dev/flyball/workqueue"
)

// Source adds keys to a controller. Package source has implementations.
type Source[K comparable] interface {
	// Run adds keys to out until ctx is done. It calls synced once, after it has added the keys of everything that was
	// there at the start. Before it returns, it removes its registrations, such as handlers of an informer. A source
	// that has no more keys may return nil early. An error stops the controller.
	Run(ctx context.Context, out *Sink[K], synced func()) error
	// Health returns nil, or the reason why the source is not synced, in words for people.
	Health() error
	// String names the source in logs and causes, for example "pods".
	String() string
	// Repeats reports whether a second Run adds all keys again, as a source that reads a cache does. Such a source also
	// runs before the controller does ([Controller.Warmup]), and the keys that it adds then may be dropped.
	Repeats() bool
}

// Enqueuer adds keys to a controller's queue. Their cause is the event that is being handled. An Enqueuer is valid only
// during the call that it was passed to.
type Enqueuer[K comparable] interface {
	// Add queues key at once.
	Add(key K)
	// AddAfter queues key after d. An Add of the same key in the meantime does not cancel it.
	AddAfter(key K, d time.Duration)
	// AddRateLimited queues key after the backoff of its failures.
	AddRateLimited(key K)
	// AddWith queues key with any options. If o has no cause, the cause is the event. If o has no priority, the
	// priority is that of the Enqueuer (see [Sink.LowPriority]), as with the other methods.
	AddWith(key K, o workqueue.AddOptions)
}

// Sink is the part of a controller that a [Source] uses.
type Sink[K comparable] struct {
	controller string
	// enqueuer is the method Enqueuer of a feed.Intake. It is a function value, which hides the type feed.Intake; see
	// [controller].
	enqueuer func(cause workqueue.Cause, changed bool) Enqueuer[K]
}

// String returns the name of the controller.
func (s *Sink[K]) String() string { return s.controller }

// For returns an [Enqueuer] whose keys carry cause.
func (s *Sink[K]) For(cause workqueue.Cause) Enqueuer[K] { return s.enqueuer(cause, true) }

// LowPriority is For with workqueue.LowPriority. Use it for objects that have not changed, such as those of the initial
// list or a resync, so that keys of changed objects are reconciled first.
func (s *Sink[K]) LowPriority(cause workqueue.Cause) Enqueuer[K] { return s.enqueuer(cause, false) }

func (c *engine[K]) Watch(s Source[K]) error {
	if misuse.IsNil(s) {
		return fmt.Errorf("controller %s: watch: the source is nil: package source has constructors", c.name)
	}
	if !c.feeds.Add(adapter[K]{s, c}) {
		return fmt.Errorf("controller %s: watch %s: %w", c.name, s, ErrStopped)
	}
	return nil
}

// adapter makes a Source a feed.Source.
type adapter[K comparable] struct {
	Source[K]
	controller *engine[K]
}

func (a adapter[K]) Run(ctx context.Context, held *backlog.Backlog[K, workqueue.Cause], synced func()) error {
	in := feed.NewIntake[K](ctx, a.controller, &a.controller.stats, held)
	enqueuer := func(c workqueue.Cause, changed bool) Enqueuer[K] { return in.Enqueuer(c, changed) }
	if err := a.Source.Run(ctx, &Sink[K]{a.controller.name, enqueuer}, synced); err != nil {
		return fmt.Errorf("controller %s: %w", a.controller.name, err)
	}
	return nil
}
