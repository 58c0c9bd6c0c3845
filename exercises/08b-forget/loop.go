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

import "github.com/flyball-dev/flyball/exercises/kube"

// settle decides when a key that was reconciled runs again.
func settle(q kube.Queue, key string, result kube.Result, err error) {
	switch {
	case err != nil:
		q.AddRateLimited(key)
	case result.RequeueAfter > 0:
		q.AddAfter(key, result.RequeueAfter)
	default:
		q.Forget(key)
	}
}
