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
	// MaxRetries is how often a failing key is retried before it is given up. It runs again when it is added again.
	// Zero means that it is retried for ever.
	MaxRetries int
	// Timeout is the deadline of one reconcile: its context ends then. Zero means no deadline.
	Timeout time.Duration
	// Ready is called before each reconcile, with its context. An error has the effect of an error of the reconciler.
	// Reconcilers that read through listers set it to client.Cluster.Ready, whose error is a client.ErrStale. Nil means
	// always ready.
	Ready func(ctx context.Context, key K) error
	// Admit is called when a worker has taken a key, and reports whether the key may be reconciled. A key that may not
	// is dropped: to have it back later, Admit has to remember it and call [Controller.Enqueue]. Nil means that all
	// keys may.
	Admit func(key K) bool
	// MinInterval is the shortest time between the starts of two reconciles of one key, whatever the reason for the
	// second. Zero means none.
	MinInterval time.Duration
	// Debounce is how long a key waits after the last event that added it, so that a burst of events leads to one
	// reconcile. It waits for at most MaxDebounce after the first of these events; zero means ten times Debounce.
	// Debounce does not delay retries, or keys that were added with a delay. Zero means that no key waits.
	Debounce, MaxDebounce time.Duration
	// HungAfter is how long a reconcile may take before it is logged and [Controller.Health] reports it. The worker is
	// not replaced: a key must never run twice at once, and Go cannot end a goroutine from outside. Zero means 10 min,
	// negative never.
	HungAfter time.Duration
	// ReleaseAfter is how long a reconcile takes a slot of the Limit of a [workqueue.FairOptions]. A reconcile that
	// runs longer releases the slot, so that the keys of other groups do not wait for it. Workers must be larger than
	// Limit for that. Zero or less means that it keeps the slot until it ends.
	ReleaseAfter time.Duration
	// FailingAfter is how long a key may fail without a success before [Controller.Health] reports it. A terminal error
	// is not reported, because the key is not retried. A missing permission is reported at once. Zero means 10 min,
	// negative reports neither.
	FailingAfter time.Duration
	// EnableWarmup makes [Controller.Warmup] run the sources whose keys come from a cache. A manager calls Warmup while
	// its process waits to be elected as leader, so the first reconciles then begin at once. The price is some hundred
	// bytes for each object (up to twice as many as there were at the beginning, and at least 10,000), and that event
	// handlers are called in processes that do not lead. Nil means true.
	EnableWarmup *bool
	// DrainTimeout is how long reconciles in flight may go on after the stop before their context is cancelled. Zero
	// means 30 s. It has no effect if the process sets one deadline for all its controllers, as the manager does.
	DrainTimeout time.Duration
	// RateLimiter sets the backoff of failing keys. Nil means [workqueue.DefaultControllerRateLimiter].
	RateLimiter workqueue.RateLimiter[K]
	// Order decides which ready key is reconciled next. Two controllers must not share one. Nil means first in, first
	// out.
	Order *workqueue.Order[K]
	// Metrics receives the queue's metrics, under the controller's name. Nil means none.
	Metrics workqueue.MetricsProvider
}

const (
	// mostLeftInLog is how many keys that are left the log line about the stop names.
	mostLeftInLog       = 10
	defaultPatience     = 10 * time.Minute
	defaultDrainTimeout = 30 * time.Second
	// abandonAfter is how long a worker may take to return once its context is cancelled.
	abandonAfter = 2 * time.Second
	// staleRetry is how soon a reconcile that found the cache stale is tried again, if no event comes earlier.
	// Source: util/controller of Cluster API waits as long.
	staleRetry = 100 * time.Millisecond
)
