package workqueue

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrShutDown is returned by [Queue.Get] when the queue has been shut down and has nothing left to hand out.
var ErrShutDown = errors.New("workqueue: queue is shut down")

// Options configures a [Queue]. The zero value is a FIFO queue without metrics, with [DefaultControllerRateLimiter].
type Options[K comparable] struct {
	// Name identifies the queue in metrics.
	Name string
	// RateLimiter decides how long [Queue.AddRateLimited] waits. Nil means [DefaultControllerRateLimiter].
	RateLimiter RateLimiter[K]
	// Metrics receives the queue's measurements. Nil means none are taken, and none are paid for.
	Metrics MetricsProvider
	// QueueingTime makes the queue read the clock when a key is queued and when it is handed out, so that
	// [Item.Queued] is known. Metrics imply it. False means Item.Queued is always zero.
	QueueingTime bool
	// Order decides which ready key is handed out next. Nil means first in, first out. It must not be shared with
	// another queue.
	Order Order[K]
	// MaxCauses bounds the causes kept for one key. Zero means 8; negative means none are kept.
	MaxCauses int
}

const defaultMaxCauses = 8

// AddOptions says how [Queue.AddWith] adds a key. The zero value means [Queue.Add].
type AddOptions struct {
	// After delays the key. Zero or less means no delay of its own.
	After time.Duration
	// RateLimited asks the rate limiter for a delay, as [Queue.AddRateLimited] does; the longer of it and After counts.
	RateLimited bool
	// Requeue marks After as the loop's own delay, as [Queue.RequeueAfter] does. RateLimited implies it.
	Requeue bool
	// Earliest lets an earlier delay of the loop's own stand, which this one would replace: of several, the first to end counts.
	Earliest bool
	// Priority is the key's priority; higher runs first, if the queue's order knows priorities. Nil means 0.
	// A key that is added several times before it runs has the highest of the priorities it was given.
	Priority *int
	// Cause says why the key is added. The zero Cause is not recorded.
	Cause Cause
}

// Item is a key as [Queue.Get] hands it out, with what the queue knows about it.
type Item[K comparable] struct {
	// Key is what was added.
	Key K
	// Causes are the reasons that were merged into this one run, oldest first. The slice belongs to the queue again
	// once [Queue.Done] is called for the key: copy what has to live longer.
	Causes []Cause
	// DroppedCauses counts the causes that found the list full.
	DroppedCauses int
	// Attempt is the number of [Queue.AddRateLimited] calls for the key since the last [Queue.Forget]: 0 on the first try.
	Attempt int
	// Queued is how long the key was ready to run before it was handed out, if [Options.QueueingTime] is on.
	Queued time.Duration
	// Priority is the highest priority the key was added with.
	Priority int
}

// DrainError says what was left in a queue when [Queue.Drain] gave up.
type DrainError struct {
	// Queued are the keys that were ready and never handed out; Processing those handed out without a [Queue.Done].
	// Both are formatted with fmt.Sprint, Queued in queue order.
	Queued, Processing []string
	// Cause is why Drain stopped waiting: the context's error, or [ErrShutDown] when ShutDown was called meanwhile.
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
	switch {
	case len(keys) == 0:
		return ""
	case len(keys) > most:
		return fmt.Sprintf(" (%s, …)", strings.Join(keys[:most], ", "))
	}
	return fmt.Sprintf(" (%s)", strings.Join(keys, ", "))
}
