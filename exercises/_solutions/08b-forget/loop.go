package forget

import "time"

// Queue has the methods of a queue that the loop needs.
type Queue interface {
	// AddAfter adds the key after d.
	AddAfter(key string, d time.Duration)
	// AddRateLimited adds the key after its backoff: 5 ms, and twice as long with each call since the last Forget.
	AddRateLimited(key string)
	// Forget ends the backoff of the key.
	Forget(key string)
}

// Result is the result of a reconcile that did not fail. RequeueAfter is the time after which the key runs again; zero
// if it need not.
type Result struct{ RequeueAfter time.Duration }

// settle decides when a key that was reconciled runs again.
func settle(q Queue, key string, result Result, err error) {
	switch {
	case err != nil:
		q.AddRateLimited(key)
	case result.RequeueAfter > 0:
		q.Forget(key)
		q.AddAfter(key, result.RequeueAfter)
	default:
		q.Forget(key)
	}
}
