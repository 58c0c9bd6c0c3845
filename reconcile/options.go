package reconcile

import (
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Options configures a [Controller]. The zero value works.
type Options[K comparable] struct {
	// Workers is how many keys are reconciled at once. Zero means 1.
	Workers int
	// MaxRetries is how often a key that fails is retried before it is given up until it is added anew.
	// Zero means without end.
	MaxRetries int
	// Timeout bounds one reconcile: its context is cancelled then. Zero means no bound.
	Timeout time.Duration
	// DrainTimeout is how long reconciles in flight may go on after the stop before their context is
	// cancelled. Zero means 30 s. It does not apply where the process sets the deadline for all its
	// controllers, as the manager does.
	DrainTimeout time.Duration
	// RateLimiter sets the backoff of failing keys. Nil means [workqueue.DefaultControllerRateLimiter].
	RateLimiter workqueue.RateLimiter[K]
	// Metrics receives the queue's metrics, under the controller's name. Nil: none.
	Metrics workqueue.MetricsProvider
}

const (
	defaultDrainTimeout = 30 * time.Second
	// abandonAfter is how long a worker may take to return once its context is cancelled.
	abandonAfter = 2 * time.Second
)
