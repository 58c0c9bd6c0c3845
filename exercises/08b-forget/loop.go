// Package forget is task 08b: a backoff that never ended.
//
// An operator, which is a program with controllers for one application, renews certificates. A renewal that succeeds
// returns RequeueAfter, to check again in an hour. Sometimes the certificate authority does not answer. The renewal
// then returns an error, and the loop tries again almost at once.
//
// That works for weeks. Then users complain that nothing happens for more than ten minutes after a failure. A restart
// of the operator helps, but only for some weeks.
//
// controller-runtime before v0.1.11 had this bug, which
// https://github.com/kubernetes-sigs/controller-runtime/issues/392 reports. The CronJob controller of
// kube-controller-manager had the same bug in another branch of its switch:
// https://github.com/kubernetes/kubernetes/issues/139917.
//
// Run the test, read settle, and find the line that is missing.
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
		q.AddAfter(key, result.RequeueAfter)
	default:
		q.Forget(key)
	}
}
