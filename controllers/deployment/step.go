package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Step is one thing to do: one of [Announce], [CreateReplicaSet], [EditReplicaSet], [DeleteReplicaSet],
// [UpdateStatus] and [RollBack]. Its String is a line for people.
type Step interface {
	fmt.Stringer
	isStep()
}

// Event is a Kubernetes event about the Deployment. The zero value is none.
type Event struct{ Type, Reason, Message string }

func normal(reason, format string, args ...any) Event {
	return Event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)}
}

func warning(reason, message string) Event { return Event{corev1.EventTypeWarning, reason, message} }

func (e Event) String() string {
	if e == (Event{}) {
		return ""
	}
	return fmt.Sprintf(" [%s %s: %s]", e.Type, e.Reason, e.Message)
}

// Announce records an event that belongs to no write.
type Announce struct{ Event Event }

// CreateReplicaSet creates the new ReplicaSet.
//
// When the name is taken it may be by the very ReplicaSet, not in the cache when the plan was made: then the plan is
// made again with it. Or by another, which is a collision of hashes: [planCollision]. Any other failure is told in
// the status: [planCreateFailure].
type CreateReplicaSet struct {
	ReplicaSet *appsv1.ReplicaSet
	Event      Event // recorded once it is created
}

// EditReplicaSet changes some fields of a ReplicaSet.
type EditReplicaSet struct {
	// ReplicaSet is the one to change, as it was observed, or as an earlier step of the plan leaves it.
	ReplicaSet *appsv1.ReplicaSet
	// Replicas and MinReadySeconds are the new values. Nil: unchanged.
	Replicas, MinReadySeconds *int32
	// Annotations are set, beside those that are there.
	Annotations map[string]string
	// Event is recorded once it is changed.
	Event Event
	// StatusAnyway: when this fails the further edits are left out, but the status is still written before the sync
	// fails. A user then sees the counts of a rollout whose old ReplicaSets cannot be scaled.
	StatusAnyway bool
}

// DeleteReplicaSet deletes a ReplicaSet of the history, unless it is not as it was observed any more.
type DeleteReplicaSet struct{ ReplicaSet *appsv1.ReplicaSet }

// UpdateStatus writes the Deployment's status and its revision annotation (through the status subresource, which lets
// annotations pass).
type UpdateStatus struct {
	Status   appsv1.DeploymentStatus
	Revision string // empty: unchanged
}

// RollBack writes the Deployment's template and annotations; the latter without the request to roll back.
type RollBack struct {
	Template    *corev1.PodTemplateSpec // nil: unchanged
	Annotations map[string]string       // all of them
	Event       Event                   // recorded once it is written
}

// result is rs with the edit made. rs itself stays as it is.
func (s EditReplicaSet) result(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	rs = rs.DeepCopy()
	if s.Replicas != nil {
		rs.Spec.Replicas = s.Replicas
	}
	if s.MinReadySeconds != nil {
		rs.Spec.MinReadySeconds = *s.MinReadySeconds
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	maps.Copy(rs.Annotations, s.Annotations)
	return rs
}

func (Announce) isStep()         {}
func (CreateReplicaSet) isStep() {}
func (EditReplicaSet) isStep()   {}
func (DeleteReplicaSet) isStep() {}
func (UpdateStatus) isStep()     {}
func (RollBack) isStep()         {}

func (s Announce) String() string { return "announce" + s.Event.String() }

func (s CreateReplicaSet) String() string {
	return fmt.Sprintf("create %s replicas=%d%s", s.ReplicaSet.Name, size(s.ReplicaSet), s.Event)
}

func (s EditReplicaSet) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "edit %s", s.ReplicaSet.Name)
	if s.Replicas != nil {
		fmt.Fprintf(&b, " replicas=%d", *s.Replicas)
	}
	if s.MinReadySeconds != nil {
		fmt.Fprintf(&b, " minReadySeconds=%d", *s.MinReadySeconds)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		fmt.Fprintf(&b, " %s=%s", shortKey(key), s.Annotations[key])
	}
	return b.String() + s.Event.String()
}

func (s DeleteReplicaSet) String() string { return "delete " + s.ReplicaSet.Name }

func (s UpdateStatus) String() string {
	var b strings.Builder
	st := s.Status
	fmt.Fprintf(&b, "status generation=%d replicas=%d updated=%d ready=%d available=%d unavailable=%d",
		st.ObservedGeneration, st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas,
		st.UnavailableReplicas)
	if st.TerminatingReplicas != nil {
		fmt.Fprintf(&b, " terminating=%d", *st.TerminatingReplicas)
	}
	if st.CollisionCount != nil {
		fmt.Fprintf(&b, " collisions=%d", *st.CollisionCount)
	}
	if s.Revision != "" {
		fmt.Fprintf(&b, " revision=%s", s.Revision)
	}
	for _, c := range st.Conditions {
		fmt.Fprintf(&b, " %s=%s/%s", c.Type, c.Status, c.Reason)
	}
	return b.String()
}

func (s RollBack) String() string {
	if s.Template == nil {
		return "clear rollback" + s.Event.String()
	}
	return "roll back" + s.Event.String()
}

// shortKey is an annotation's key without the controller's own prefix.
func shortKey(key string) string { return strings.TrimPrefix(key, "deployment.kubernetes.io/") }
