package workqueue

import "time"

// Add makes the key ready. If the key is being processed, it becomes ready again as soon as it is done. Add cancels the
// delay that the loop itself set for the key ([Queue.AddRateLimited], [Queue.RequeueAfter]). After ShutDown it does
// nothing.
func (q *Queue[K]) Add(key K) { q.admit(key, request{}) }

// AddWithCause is Add with a cause.
func (q *Queue[K]) AddWithCause(key K, c Cause) { q.AddWith(key, AddOptions{Cause: c}) }

// AddAfter adds the key after d has passed. Adding the key in another way does not cancel the delay. If it is called
// several times, the delay that expires first counts. If d is zero or less, AddAfter is [Queue.Add].
func (q *Queue[K]) AddAfter(key K, d time.Duration) { q.admit(key, request{after: d}) }

// AddRateLimited counts a failure of the key and adds the key after the delay that the rate limiter returns. The loop
// uses it for its own retries: an earlier run of the key cancels the delay.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, AddOptions{RateLimited: true}) }

// RequeueAfter adds the key after d has passed. The loop uses it for its own periodic runs: an earlier run of the key
// cancels the delay, and a later call replaces it. If d is zero or less, RequeueAfter is [Queue.Add].
func (q *Queue[K]) RequeueAfter(key K, d time.Duration) {
	q.admit(key, request{after: d, kind: requeueDelay})
}

// AddWith adds the key with the given options.
func (q *Queue[K]) AddWith(key K, o AddOptions) {
	r := request{after: o.After, failed: o.RateLimited, earliest: o.Earliest}
	if o.Requeue || o.RateLimited {
		r.kind = requeueDelay
	}
	if o.RateLimited && !q.ShuttingDown() {
		r.after = max(r.after, q.limiter.When(key))
	}
	if o.Priority != nil {
		r.priority = *o.Priority
	}
	if q.maxCauses > 0 && o.Cause != (Cause{}) {
		r.cause = &o.Cause
	}
	q.admit(key, r)
}
