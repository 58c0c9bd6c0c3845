package workqueue

import "time"

// AddWithCause is Add with a cause.
func (q *Queue[K]) AddWithCause(key K, c Cause) { q.AddWith(key, AddOptions{Cause: c}) }

// AddAfter adds the key after d has passed. Adding the key in another way does not cancel the delay. If it is called
// several times, the delay that expires first counts. If d is zero or less, AddAfter is [Queue.Add].
func (q *Queue[K]) AddAfter(key K, d time.Duration) { q.submit(key, &add[K]{after: d}) }

// AddRateLimited counts a failure of the key and adds the key after the delay that the rate limiter returns. It is for
// retries: if the key is queued before the delay expires, the delay is cancelled.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, AddOptions{RateLimited: true}) }

// RequeueAfter adds the key after d has passed. It is for periodic runs: if the key is queued before the delay expires,
// the delay is cancelled. A later call replaces the delay. If d is zero or less, RequeueAfter is [Queue.Add].
func (q *Queue[K]) RequeueAfter(key K, d time.Duration) {
	q.submit(key, &add[K]{after: d, kind: requeueDelay})
}

// AddWith adds the key with the given options.
func (q *Queue[K]) AddWith(key K, o AddOptions) {
	a := add[K]{after: o.After, earliest: o.Earliest, failed: o.RateLimited}
	if o.Requeue || o.RateLimited {
		a.kind = requeueDelay
	}
	if o.RateLimited && !q.ShuttingDown() {
		a.after = max(a.after, q.limiter.When(key))
	}
	if o.Priority != nil {
		a.priority = *o.Priority
	}
	a.described = a.priority != 0
	if q.maxCauses > 0 && o.Cause != (Cause{}) {
		a.cause, a.caused, a.described = o.Cause, true, true
	}
	q.submit(key, &a)
}

// add is one call of an Add method: its options in the form that the queue needs. It holds them by value, because
// another goroutine may execute the add after the call has returned.
type add[K comparable] struct {
	// key, its hash and its group are filled in by submit.
	key   K
	hash  uint64
	group string

	// after is the delay, and kind the kind of the delay.
	after time.Duration
	kind  delayKind
	// earliest keeps a pending requeue delay if it expires before this one.
	earliest bool
	// failed reports whether processing the key failed, so that this add is a retry.
	failed bool
	// described reports whether there is a priority, a group or a cause to record, and caused whether there is a cause.
	// They are flags so that a plain add need not compare its cause with the zero Cause.
	described, caused bool
	priority          int
	cause             Cause
}

// Forget resets the failure count of the key. Call it when processing succeeded or was given up: the next failure then
// counts as the first.
func (q *Queue[K]) Forget(key K) {
	q.limiter.Forget(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries.find(key); e != nil {
		e.attempt = 0
	}
}

// NumRequeues returns how many failures the rate limiter has counted since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }
