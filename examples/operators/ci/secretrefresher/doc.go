// Package secretrefresher renews the pull secrets of service accounts every 30 days. It drops references to secrets
// that are too old, and OpenShift (or the minter in this package, on plain Kubernetes) then creates new ones. The old
// secrets may be deleted 30 days after that, but no earlier: running Pods still need them.
//
//	age   0 ─────────────── 30 days ─────────────────── 60 days
//	      referenced        replaced by a new one        deleted, if Options.RemoveOld
//
// An annotation of a secret may set its time instead. plan.go decides, without requests; refresher.go carries it out.
// Pods keep the secrets that they were created with. roller.go therefore restarts the Pods of Deployments, StatefulSets
// and DaemonSets that opt in, when their service account gets other secrets.
//
// Source: pkg/controller/serviceaccount_secret_refresher of openshift/ci-tools.
package secretrefresher
