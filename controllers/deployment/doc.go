// Package deployment is the Deployment controller. For every Deployment it keeps one ReplicaSet per version of the pod
// template, and moves replicas from the old ones to the new one within the limits that the Deployment's strategy sets.
//
//	Deployments, ReplicaSets, Pods ─events─▶ keys ─▶ Reconcile
//	                                                  │ claim: adopt and release ReplicaSets
//	                                                  ▼
//	                              Observed ──▶ Plan (pure) ──▶ Changes ──▶ apply ──▶ API server
//
// Read the files in this order:
//
//	controller.go      the options, and Reconcile: what one sync does with one Deployment
//	handlers.go        which Deployments an event concerns
//	plan.go            what is observed, what a plan is, and which situation leads to which steps
//	step.go            the steps a plan can hold, and their text
//	newreplicaset.go   the new ReplicaSet: its annotations, its creation
//	rewritten.go       the delay if something changes each new ReplicaSet when it is created
//	rolling.go         RollingUpdate: scale up the new one, scale down the old ones
//	recreate.go        Recreate: scale down the old ones, wait, scale up the new one
//	scale.go           a change of spec.replicas, spread over the ReplicaSets of a rollout
//	status.go          the counts and the condition Available
//	progress.go        the condition Progressing and its deadline
//	history.go         deletion of ReplicaSets beyond the revision history limit
//	rollback.go        the deprecated rollback annotation
//	apply.go           sends the steps
//
// A first reading may skip the folders below internal, which hold what the planner computes with: replicasets (sizes,
// orders, annotations, revisions, hashes), rollout (limits, shares, progress) and conditions.
//
// # One write of the Deployment per sync
//
// A plan may hold several writes of the Deployment: first that it was paused or got a new ReplicaSet, then its status.
// The sync ends before the second. The watch event of the first write starts the next sync, which observes the outcome
// and goes on from there. So in each state of a Deployment that a watcher sees, the status is what the controller
// observed. kube-controller-manager shows the same states: there the second write carries an outdated resource version,
// and the sync fails with a conflict. Here it is not sent.
//
// # Where it differs
//
// The behaviour is that of kube-controller-manager v1.37.2, as far as the objects, events and conditions of a cluster
// show it. The deliberate differences are marked "Differs:" in the comments, each with a test.
package deployment
