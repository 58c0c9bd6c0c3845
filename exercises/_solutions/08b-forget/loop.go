package forget

import "github.com/flyball-dev/flyball/exercises/kube"

// settle decides when a key that was reconciled runs again.
func settle(q kube.Queue, key string, result kube.Result, err error) {
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
