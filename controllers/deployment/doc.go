// Package deployment is the Deployment controller: it keeps, for every Deployment, one ReplicaSet per version of the
// pod template, and moves replicas from the old ones to the new one without going over or under the limits that the
// Deployment's strategy sets.
//
//	Deployments, ReplicaSets, Pods ─events─▶ keys ─▶ Reconcile
//	                                                  │ claim: adopt and release ReplicaSets
//	                                                  ▼
//	                              Observed ──▶ NewPlan (pure) ──▶ Plan ──▶ apply ──▶ API server
//
// Everything the controller knows is in the pure half. Read it in this order:
//
//	plan.go         what is observed, what a plan is, and which situation leads to which steps
//	revision.go     the new ReplicaSet: finding it, keeping its annotations, making it
//	rolling.go      RollingUpdate: up with the new, down with the old
//	recreate.go     Recreate: down with the old, wait, up with the new
//	scale.go        a change of spec.replicas, spread over the ReplicaSets of a rollout
//	rollback.go     the deprecated rollback annotation
//	history.go      deleting ReplicaSets past the revision history limit
//	status.go       counts and conditions
//	progress.go     the Progressing condition and the deadline
//	annotations.go, conditions.go, hash.go, limits.go, replicasets.go   what these stand on
//
// apply.go then sends the steps, and controller.go and handlers.go join both to the loop.
//
// # One write of the Deployment per sync
//
// A plan may hold several writes of the Deployment: the note that it was paused or got a new ReplicaSet, then its
// status. Where the second would be sent the sync ends. The watch event of the first starts the next sync, which sees
// the outcome and goes on from there. So each state of a Deployment that a watcher sees is one the controller
// observed the world in. kube-controller-manager shows the same states: there the second write carries an outdated
// resource version and the sync fails with a conflict; here it is not sent.
//
// # Where it differs
//
// The behaviour is that of kube-controller-manager v1.37.1 as far as the objects, events and conditions of a cluster
// show it. The deliberate differences are marked "Differs:" in the comments, each with a test.
package deployment
