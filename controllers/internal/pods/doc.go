// Package pods answers the questions about pods that several controllers ask: is a pod active, ready, available or
// being deleted, and which pods does a selector match? The answers about one pod depend on that pod alone and, where
// needed, on the time.
//
// One definition keeps, say, the ReplicaSet controller's "available" and the Deployment's sum of it from drifting
// apart.
package pods
