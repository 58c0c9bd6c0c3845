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
	// MaxRetries is how often a failing key is retried before it is given up. A key that was given up runs again when
	// it is added again. Zero means that it is retried for ever.
	MaxRetries int
	// Timeout is how long one reconcile may take before its context ends. Zero means no limit.
	Timeout time.Duration
	// Ready is called before each reconcile, with its context. If it returns an error, the controller treats that as
	// the reconciler's error, and does not call the reconciler. Set it to client.Cluster.Ready for a reconciler that
	// reads through listers: it returns client.ErrStale while the cache is behind. Nil means always ready.
	Ready func(ctx context.Context, key K) error
	// Admit is called when a worker has taken a key, and reports whether the key may be reconciled. If not, the key is
	// dropped: to reconcile it later, Admit has to remember it and call [Controller.Enqueue]. Nil means that all keys
	// may be reconciled.
	Admit func(key K) bool
	// MinInterval is the shortest time between the starts of two reconciles of one key, whatever the cause of the
	// second. Zero means no minimum.
	MinInterval time.Duration
	// Debounce is how long a key waits after the last event that added it, so that a burst of events leads to one
	// reconcile. Debounce does not delay retries, or keys that were added with a delay. Zero means that no key waits.
	// The key waits for at most MaxDebounce after the first of these events; a MaxDebounce of zero means ten times
	// Debounce.
	Debounce, MaxDebounce time.Duration
	// HungAfter is how long a reconcile may take before it is logged and [Controller.Health] reports it. The worker is
	// not replaced: a key must never run twice at once, and Go cannot end a goroutine from outside. Zero means 10 min,
	// negative never.
	HungAfter time.Duration
	// ReleaseAfter is how long a reconcile occupies its slot of the Limit in [workqueue.FairOptions]. A reconcile that
	// runs longer releases the slot, so that the keys of other groups do not wait for it. This has an effect only if
	// Workers is larger than Limit. Zero or less means that a reconcile keeps its slot until it ends.
	ReleaseAfter time.Duration
	// FailingAfter is how long a key may fail without a success before [Controller.Health] reports it. A terminal error
	// is not reported, because the key is not retried. A missing permission is reported at once. Zero means 10 min; if
	// FailingAfter is negative, neither failing keys nor missing permissions are reported.
	FailingAfter time.Duration
	// EnableWarmup makes [Controller.Warmup] run the sources whose keys come from a cache. A manager calls Warmup while
	// its process waits to be elected as leader, so the first reconciles then begin at once. The price is a few hundred
	// bytes for each object, for up to twice as many objects as there were at the beginning and at least 10,000. Also,
	// event handlers are called in processes that do not lead. Nil means true.
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

// LoopOptions returns o. A builder accepts every type with this method as options of a controller.
func (o Options[K]) LoopOptions() Options[K] { return o }

const (
	// mostLeftInLog is the number of keys that the log line at a stop names.
	mostLeftInLog       = 10
	defaultPatience     = 10 * time.Minute
	defaultDrainTimeout = 30 * time.Second
	// abandonAfter is how long a worker may take to return once its context is cancelled.
	abandonAfter = 2 * time.Second
	// staleRetry is the delay after which a reconcile that found the cache stale is tried again, if no event queues the
	// key earlier. Source: util/controller of Cluster API waits as long.
	staleRetry = 100 * time.Millisecond
)
