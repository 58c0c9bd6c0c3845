package forget

import "time"

// Queue is what the loop needs of a queue.
type Queue interface {
	// AddAfter adds the key after d.
	AddAfter(key string, d time.Duration)
	// AddRateLimited adds the key after its backoff: 5 ms, and twice as long with each call since the last Forget.
	AddRateLimited(key string)
	// Forget ends the backoff of the key.
	Forget(key string)
}

// Result says when a key runs again that did not fail.
type Result struct{ RequeueAfter time.Duration }

// settle decides what becomes of a key that was reconciled.
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
