// Package pods states the facts about a pod that controllers act on: is it active, ready, available, on its way out,
// and whose is it. All of it is pure: a pod (and, where time matters, an instant) in, an answer out.
//
// Controllers ask these questions of the same pod in several places; one definition keeps, say, the ReplicaSet
// controller's "available" and the Deployment's sum of it from drifting apart.
package pods
