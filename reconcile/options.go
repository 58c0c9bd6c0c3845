package reconcile

import (
	"context"
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
	// Ready is asked before each reconcile, with its context. An error puts the key off as an error of the reconciler
	// would: quietly, if it is a client.ErrStale. Reconcilers that read by listers put client.Cluster.Ready here.
	// Nil: always ready.
	Ready func(ctx context.Context, key K) error
	// MinInterval is the least time between the starts of two reconciles of one key, whatever asks for them. Zero
	// means none.
	MinInterval time.Duration
	// Debounce makes a key wait until no event has added it for this long, so that a storm of events is one reconcile;
	// but no longer than MaxDebounce after the first of them, zero being ten times Debounce. Retries and delays that
	// were asked for do not wait. Zero means none.
	Debounce, MaxDebounce time.Duration
	// HungAfter is how long a reconcile may take before it is logged and [Controller.Health] names it. The worker is
	// not replaced: a key must never run twice at once, and a goroutine cannot be ended from outside. Zero means 10
	// min, negative never.
	HungAfter time.Duration
	// FailingAfter is how long a key may fail, without succeeding once, before [Controller.Health] says so. Terminal
	// errors do not count: nobody tries again. A permission that is missing it says at once. Zero means 10 min,
	// negative never either.
	FailingAfter time.Duration
	// EnableWarmup lets [Controller.Warmup], which a manager calls while its process waits for the leadership, run
	// the sources that tell of caches: the work begins at once then. It costs some hundred bytes for each object, up
	// to twice as many as there were when it began and at least 10,000, and event handlers are called in processes
	// that do not lead. Nil means true.
	EnableWarmup *bool
	// DrainTimeout is how long reconciles in flight may go on after the stop before their context is
	// cancelled. Zero means 30 s. It does not apply where the process sets the deadline for all its
	// controllers, as the manager does.
	DrainTimeout time.Duration
	// RateLimiter sets the backoff of failing keys. Nil means [workqueue.DefaultControllerRateLimiter].
	RateLimiter workqueue.RateLimiter[K]
	// Order decides which key is reconciled next; no other controller may use it. Nil means first in, first out.
	Order *workqueue.Order[K]
	// Metrics receives the queue's metrics, under the controller's name; nil means none.
	Metrics workqueue.MetricsProvider
}

const (
	// mostLeftInLog is how many keys the line of the log names that reports the stop.
	mostLeftInLog       = 10
	defaultPatience     = 10 * time.Minute
	defaultDrainTimeout = 30 * time.Second
	// abandonAfter is how long a worker may take to return once its context is cancelled.
	abandonAfter = 2 * time.Second
	// staleRetry is how soon a reconcile that found the cache stale is tried again, if no event comes before.
	// Source: util/controller of Cluster API waits as long.
	staleRetry = 100 * time.Millisecond
)
