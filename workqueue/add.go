package workqueue

import "time"

// Add makes the key ready, or, while it is processing, ready again as soon as it is done. It cancels the delay that
// the loop itself has set for the key ([Queue.AddRateLimited], [Queue.RequeueAfter]). After ShutDown it does nothing.
func (q *Queue[K]) Add(key K) { q.admit(key, request{}) }

// AddWithCause is Add, and remembers why.
func (q *Queue[K]) AddWithCause(key K, c Cause) { q.AddWith(key, AddOptions{Cause: c}) }

// AddAfter adds the key when d has passed. The delay is kept whatever else happens to the key; of several, the one that
// ends first counts. Zero or less is [Queue.Add].
func (q *Queue[K]) AddAfter(key K, d time.Duration) { q.admit(key, request{after: d}) }

// AddRateLimited counts a failure of the key and adds it when the rate limiter says so. It is the loop's own retry:
// whatever makes the key run earlier replaces it.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, AddOptions{RateLimited: true}) }

// RequeueAfter adds the key when d has passed, unless something makes it run earlier: the loop's own periodic run.
// A later call replaces an earlier one. Zero or less is [Queue.Add].
func (q *Queue[K]) RequeueAfter(key K, d time.Duration) {
	q.admit(key, request{after: d, kind: ownDelay})
}

// AddWith adds the key as the options say.
func (q *Queue[K]) AddWith(key K, o AddOptions) {
	r := request{after: o.After, failed: o.RateLimited, earliest: o.Earliest}
	if o.Requeue || o.RateLimited {
		r.kind = ownDelay
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
