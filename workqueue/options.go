package workqueue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrShutDown is returned by [Queue.Get] and [Queue.Next] when the queue has been shut down and has nothing left to
// hand out.
var ErrShutDown = errors.New("workqueue: queue is shut down")

// Options configures a [Queue]. The zero value is a FIFO queue without metrics, with [DefaultControllerRateLimiter].
type Options[K comparable] struct {
	// Name identifies the queue in metrics.
	Name string
	// RateLimiter decides how long [Queue.AddRateLimited] waits. Nil means [DefaultControllerRateLimiter].
	RateLimiter RateLimiter[K]
	// Metrics receives the queue's measurements. Nil means the queue takes none.
	Metrics MetricsProvider
	// QueueingTime makes the queue read the clock when a key becomes ready and when it is handed out, to fill in
	// [Item.Queued]. Metrics and an Order imply it. Without it, Item.Queued is always zero.
	QueueingTime bool
	// Order decides which ready key is handed out next. Nil means first in, first out, with a second lane for keys of
	// negative priority: one of them is handed out when no other key is ready, and otherwise after every nine other
	// keys. It must not be shared with another queue.
	Order *Order[K]
	// MaxCauses is the maximum number of causes kept for one key. Zero means 8; negative means none are kept.
	MaxCauses int
}

// AddOptions configures [Queue.AddWith]. The zero value means [Queue.Add].
type AddOptions struct {
	// After delays the key. Zero or less means no delay.
	After time.Duration
	// RateLimited asks the rate limiter for a delay, as [Queue.AddRateLimited] does. The longer of that delay and After
	// counts.
	RateLimited bool
	// Requeue makes After a requeue delay, as [Queue.RequeueAfter] does. RateLimited implies it.
	Requeue bool
	// Earliest keeps an earlier requeue delay, which this one would otherwise replace. So the earliest of several
	// delays counts.
	Earliest bool
	// Priority is the key's priority; higher runs first, if the queue's order knows priorities. Without an Order, only
	// its sign matters. Nil means 0. A key that is added several times before it runs has the highest of its
	// priorities.
	Priority *int
	// Cause is why the key is added. The zero Cause is not recorded.
	Cause Cause
}

// Cause is one reason why a key was added: an event of a source, about an object, at a resource version. All fields are
// for logs, traces and people; the queue does not interpret them.
type Cause struct {
	// Source names what added the key, for example the watched kind.
	Source string
	// Event is what happened: Add, Update, Delete, Resync, Retry …
	Event string
	// Object is the object of the event, usually as namespace/name. It may differ from the key.
	Object string
	// ResourceVersion is the object's resource version at the event.
	ResourceVersion string
	// Time is when the source saw the event. The queue stores it as given.
	Time time.Time
}

// Item is a key that [Queue.Get] hands out, with what the queue knows about it.
type Item[K comparable] struct {
	// Key is what was added.
	Key K
	// Causes are the reasons that were merged into this run, oldest first. The queue reuses the slice after
	// [Queue.Done]: callers that need the causes longer must copy them.
	Causes []Cause
	// DroppedCauses is the number of causes that were dropped because the list was full.
	DroppedCauses int
	// Attempt is the number of [Queue.AddRateLimited] calls for the key since the last [Queue.Forget]; it is 0 on the
	// first try.
	Attempt int
	// Queued is how long the key was ready before it was handed out, if [Options.QueueingTime] is set.
	Queued time.Duration
	// Priority is the highest priority the key was added with.
	Priority int

	id uint32 // of the key's entry
}

// DrainError lists the keys that were left in a queue when [Queue.Drain] gave up.
type DrainError struct {
	// Queued holds the keys that were ready and were not handed out, Processing those that were handed out and are not
	// done. Both are formatted with fmt.Sprint, Queued in queue order.
	Queued, Processing []string
	// Cause is why Drain stopped waiting: the context's error, or [ErrShutDown] if ShutDown was called.
	Cause error
}

// Error lists at most ten keys of each kind.
func (e *DrainError) Error() string {
	return fmt.Sprintf("drain work queue: %v: %d queued%s, %d processing%s", e.Cause,
		len(e.Queued), firstKeys(e.Queued), len(e.Processing), firstKeys(e.Processing))
}

// Unwrap returns the Cause.
func (e *DrainError) Unwrap() error { return e.Cause }

func firstKeys(keys []string) string {
	const most = 10
	if len(keys) == 0 {
		return ""
	}
	if len(keys) > most {
		keys = append(slices.Clone(keys[:most]), "…")
	}
	return " (" + strings.Join(keys, ", ") + ")"
}
