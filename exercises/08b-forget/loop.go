// Package forget is task 08b: a wait that nobody ended.
//
// An operator (a program with controllers for one application) renews certificates. A renewal that goes well returns
// RequeueAfter: look again in an hour. Now and then the authority does not answer. Then the renewal returns an error,
// and the loop tries again at once, or nearly so.
//
// That works for weeks. Then users complain: after a failure, nothing happens for ten minutes and more. A restart of
// the operator helps, for some weeks.
//
// This is a model of controller-runtime before v0.1.11, whose issue is
// https://github.com/kubernetes-sigs/controller-runtime/issues/392. CronJob's controller of kube-controller-manager had
// the same bug in another branch of its switch: https://github.com/kubernetes/kubernetes/issues/139917.
//
// Run the test, read settle, and find the line that is missing.
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
		q.AddAfter(key, result.RequeueAfter)
	default:
		q.Forget(key)
	}
}
