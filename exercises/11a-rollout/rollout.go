// Package rollout is task 11a: a rollout as a plan.
//
// A Deployment has a ReplicaSet for each version of its template: the new one, and old ones. Build Plan. It looks at
// the sizes and at how many Pods are available, and says which ReplicaSets get another size now. It is called again
// whenever something has changed, and remembers nothing. About 70 lines are enough.
//
// The contract:
//
//   - Limits: a percentage of Replicas is rounded up for MaxSurge, and down for MaxUnavailable. If both come to zero,
//     one Pod may be unavailable: otherwise no rollout could begin. No more Pods than Replicas can be unavailable.
//   - The new ReplicaSet comes first. It grows to Replicas, as far as all ReplicaSets together stay within Most. If it
//     is larger than Replicas, it shrinks to that. If this changes its size, it is the whole plan.
//   - Otherwise old ReplicaSets shrink. At most so many Pods may go: the sizes of all ReplicaSets, less Least, less
//     the Pods of the new ReplicaSet that are not available yet. The last term keeps the old version alive if the new
//     one is broken.
//   - Of the old Pods, those that are not available go first, the oldest ReplicaSet first: they serve nobody. Then
//     available ones, again the oldest ReplicaSet first, as long as Least Pods of all versions stay available.
//   - A ReplicaSet occurs in a plan at most once, and not at all if its size stays.
//
// Begin with the first test: Limits.
package rollout

// Deployment is what a user asks for. MaxSurge and MaxUnavailable are numbers of Pods, such as "2", or percentages of
// Replicas, such as "25%".
type Deployment struct {
	Replicas                 int
	MaxSurge, MaxUnavailable string
}

// Set is a ReplicaSet. Size is how many Pods it asks for, and Available how many of these can serve.
type Set struct {
	Name            string
	Size, Available int
}

// Limits are the bounds of a rollout: at most Most Pods, of which at least Least are available.
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

// Plan returns the ReplicaSets that get another size now. The old ones are given oldest first.
func Plan(l Limits, old []Set, current Set) []Resize {
	panic("not written yet: Plan")
}
