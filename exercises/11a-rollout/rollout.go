// Package rollout is task 11a: the plan of a rollout.
//
// A Deployment has a ReplicaSet for each version of its template: one new ReplicaSet, and old ones. Build Plan. From
// the sizes of the ReplicaSets and the numbers of available Pods, it decides which ReplicaSets get another size now. It
// is called again whenever something has changed, and remembers nothing. About 70 lines are enough.
//
// The contract:
//
//   - Limits: a percentage of Replicas is rounded up for MaxSurge, and down for MaxUnavailable. If both are zero, one
//     Pod may be unavailable, because no rollout could begin otherwise. At most Replicas Pods may be unavailable.
//   - The new ReplicaSet comes first. It grows to Replicas, as far as all ReplicaSets together stay within Most. If it
//     is larger than Replicas, it shrinks to Replicas. If its size changes, this is the whole plan.
//   - Otherwise old ReplicaSets shrink. The number of Pods that may go is the size of all ReplicaSets, minus Least,
//     minus the Pods of the new ReplicaSet that are not available yet. The last term keeps the old version running if
//     the new one is broken.
//   - Old Pods that are not available go first, from the oldest ReplicaSet on, because they serve no requests. Then
//     available ones go, again from the oldest ReplicaSet on, as long as Least Pods of all versions stay available.
//   - A ReplicaSet is in a plan at most once, and only if its size changes.
//
// Begin with the first test: Limits.
package rollout

// Deployment is what a user asks for. MaxSurge and MaxUnavailable are numbers of Pods, such as "2", or percentages of
// Replicas, such as "25%".
type Deployment struct {
	Replicas                 int
	MaxSurge, MaxUnavailable string
}

// Set is a ReplicaSet. Size is how many Pods it asks for, and Available how many of them can serve.
type Set struct {
	Name            string
	Size, Available int
}

// Limits has the bounds of a rollout: at most Most Pods, of which at least Least are available.
type Limits struct{ Replicas, Most, Least int }

// Resize is a step of a plan.
type Resize struct {
	Set      string
	From, To int
}

// Limits returns what the Deployment allows.
func (d Deployment) Limits() (Limits, error) {
	panic("not written yet: Limits")
}

// Plan returns the ReplicaSets that get another size now. old is sorted, the oldest first.
func Plan(l Limits, old []Set, current Set) []Resize {
	panic("not written yet: Plan")
}
