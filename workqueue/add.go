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
func (q *Queue[K]) AddAfter(key K, d time.Duration) { q.admit(key, request{demand: demand{after: d}}) }

// AddRateLimited counts a failure of the key and adds the key after the delay that the rate limiter returns. The loop
// uses it for its own retries: an earlier run of the key cancels the delay.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, AddOptions{RateLimited: true}) }

// RequeueAfter adds the key after d has passed. The loop uses it for its own periodic runs: an earlier run of the key
// cancels the delay, and a later call replaces it. If d is zero or less, RequeueAfter is [Queue.Add].
func (q *Queue[K]) RequeueAfter(key K, d time.Duration) {
	q.admit(key, request{demand: demand{after: d, kind: requeueDelay}})
}

// AddWith adds the key with the given options.
func (q *Queue[K]) AddWith(key K, o AddOptions) {
	r := request{demand: demand{after: o.After, failed: o.RateLimited, earliest: o.Earliest}}
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

// request is the common form of what the Add methods ask for.
type request struct {
	demand
	cause *Cause
}

// demand is a request without its cause.
type demand struct {
	after    time.Duration
	kind     delayKind
	priority int
	// failed: processing the key failed, so it is retried.
	failed bool
	// earliest: do not replace a requeue delay that expires earlier.
	earliest bool
}

// admission is a request of an Add method that whoever holds the lock executes.
type admission[K comparable] struct {
	key    K
	hash   uint64
	demand demand
	group  string
	cause  Cause // zero: it has none
}

// admit implements all Add methods.
func (q *Queue[K]) admit(key K, r request) {
	h := q.entries.hash(key) // before locking: it panics for a key that cannot be hashed
	group := ""              // not in request: the compiler would move all that a request points to onto the heap
	if q.group != nil {
		group = q.group(key)
	}
	if q.mu.TryLock() {
		if !q.shutdown.begun {
			q.admitLocked(key, h, r, group)
		}
		q.mu.Unlock()
		return
	}
	a := admission[K]{key: key, hash: h, demand: r.demand, group: group}
	if r.cause != nil {
		a.cause = *r.cause
	}
	q.mu.Leave(a)
}

// executeLocked executes a request that was left.
func (q *Queue[K]) executeLocked(a *admission[K]) {
	if q.shutdown.begun {
		return
	}
	r := request{demand: a.demand}
	if a.cause != (Cause{}) {
		r.cause = &a.cause
	}
	q.admitLocked(a.key, a.hash, r, a.group)
}
