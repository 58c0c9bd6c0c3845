// Package secretrefresher renews the pull secrets of service accounts every 30 days. It drops references to secrets that are too
// old; somebody else (OpenShift, or the minter here, on plain Kubernetes) makes new ones; and when a service account has one
// again, old secrets may be deleted, after as long again: pods that were started with them need them still.
//
//	age   0 ─────────────── 30 days ─────────────────── 60 days
//	      referred to       not any more; a new one      deleted, if Options.RemoveOld
//
// A secret may say itself when it is too old, by an annotation. plan.go decides, without a cluster; refresher.go does it.
// Pods keep the secrets that they were created with: roller.go has Deployments, StatefulSets and DaemonSets that ask for it
// replace theirs when the service account has others.
//
// Source: pkg/controller/serviceaccount_secret_refresher of openshift/ci-tools.
package secretrefresher
