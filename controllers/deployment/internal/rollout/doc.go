// Package rollout holds the arithmetic of a rollout. No function has a side effect, except that [Limits.Spread] sorts
// its argument.
//
//	limits.go     how far a rollout may deviate from the size of the Deployment
//	shares.go     how the ReplicaSets share a change of that size
//	progress.go   whether a rollout has moved, and whether it is complete
package rollout
