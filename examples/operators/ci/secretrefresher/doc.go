// Package secretrefresher renews the pull secrets of service accounts every 30 days. It drops references to secrets
// that are too old. OpenShift (or the minter in this package, on plain Kubernetes) then creates new ones. Once a
// service account has a new secret, the old ones may be deleted, but only after another 30 days: running pods still
// need them.
//
//	age   0 ─────────────── 30 days ─────────────────── 60 days
//	      referred to       not any more; a new one      deleted, if Options.RemoveOld
//
// An annotation of a secret may set its time instead. plan.go decides, without a cluster; refresher.go carries it out.
// Pods keep the secrets that they were created with. So roller.go makes Deployments, StatefulSets and DaemonSets that
// ask for it replace their Pods when the service account gets other secrets.
//
// Source: pkg/controller/serviceaccount_secret_refresher of openshift/ci-tools.
package secretrefresher
