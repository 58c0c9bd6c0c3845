package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// step is one part of [Changes]: an announce, createReplicaSet, editReplicaSet, deleteReplicaSet, updateStatus or
// rollBack. Its String is one line of the plan's.
type step interface{ fmt.Stringer }

// event is a Kubernetes event about the Deployment. The zero value means no event.
type event struct{ Type, Reason, Message string }

func normal(reason, format string, args ...any) event {
	return event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)}
}

func warning(reason, message string) event { return event{corev1.EventTypeWarning, reason, message} }

func (e event) String() string {
	if e == (event{}) {
		return ""
	}
	return fmt.Sprintf(" [%s %s: %s]", e.Type, e.Reason, e.Message)
}

// announce records an event that belongs to no write.
type announce struct{ Event event }

// createReplicaSet creates the new ReplicaSet.
//
// If its name is taken there are two cases. Either the ReplicaSet exists already, and the cache did not have it when
// the plan was made: then the plan is made again with it. Or another ReplicaSet has the name, because the hashes of
// their templates collide: see planCollision. Any other failure is reported in the status: see planCreateFailure.
type createReplicaSet struct {
	ReplicaSet *appsv1.ReplicaSet
	Event      event // recorded after the write
}

// editReplicaSet changes some fields of a ReplicaSet.
type editReplicaSet struct {
	// ReplicaSet is the one to change, as it was observed or as an earlier step of the plan leaves it.
	ReplicaSet *appsv1.ReplicaSet
	// Replicas and MinReadySeconds are the new values. Nil: unchanged.
	Replicas, MinReadySeconds *int32
	// Annotations are added to those of the ReplicaSet.
	Annotations map[string]string
	Event       event // recorded after the write
	// StatusAnyway means that if this step fails, the further edits are skipped, but the status is still written before
	// the sync fails. So users see the counts of a rollout whose old ReplicaSets cannot be scaled.
	StatusAnyway bool
}

// result returns a copy of rs with the edit made.
func (s editReplicaSet) result(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
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

// deleteReplicaSet deletes a ReplicaSet of the history, unless it has changed since it was observed.
type deleteReplicaSet struct{ ReplicaSet *appsv1.ReplicaSet }

// updateStatus writes the Deployment's status, and its revision annotation: a write through the status subresource may
// change annotations too.
type updateStatus struct {
	Status   appsv1.DeploymentStatus
	Revision string // empty: unchanged
}

// rollBack writes the Deployment's template and annotations, without the request to roll back.
type rollBack struct {
	Template    *corev1.PodTemplateSpec // nil: unchanged
	Annotations map[string]string       // all of them
	Event       event                   // recorded after the write
}

// writesDeployment reports whether a step is a write of the Deployment.
func writesDeployment(s step) bool {
	switch s.(type) {
	case updateStatus, rollBack:
		return true
	}
	return false
}

func (s announce) String() string { return "announce" + s.Event.String() }

func (s createReplicaSet) String() string {
	rs := s.ReplicaSet
	return fmt.Sprintf("create %s replicas=%d%s%s", rs.Name, replicasets.Size(rs), annotations(rs.Annotations), s.Event)
}

func (s editReplicaSet) String() string {
	text := "edit " + s.ReplicaSet.Name
	if s.Replicas != nil {
		text += fmt.Sprintf(" replicas=%d", *s.Replicas)
	}
	if s.MinReadySeconds != nil {
		text += fmt.Sprintf(" minReadySeconds=%d", *s.MinReadySeconds)
	}
	return text + annotations(s.Annotations) + s.Event.String()
}

// annotations prints annotations by key, without the controller's own prefix.
func annotations(m map[string]string) (text string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		text += fmt.Sprintf(" %s=%s", strings.TrimPrefix(key, "deployment.kubernetes.io/"), m[key])
	}
	return text
}

func (s deleteReplicaSet) String() string { return "delete " + s.ReplicaSet.Name }

func (s updateStatus) String() string {
	st := s.Status
	text := fmt.Sprintf("status generation=%d replicas=%d updated=%d ready=%d available=%d unavailable=%d",
		st.ObservedGeneration, st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas,
		st.UnavailableReplicas)
	if st.TerminatingReplicas != nil {
		text += fmt.Sprintf(" terminating=%d", *st.TerminatingReplicas)
	}
	if st.CollisionCount != nil {
		text += fmt.Sprintf(" collisions=%d", *st.CollisionCount)
	}
	if s.Revision != "" {
		text += " revision=" + s.Revision
	}
	for _, c := range st.Conditions {
		text += fmt.Sprintf(" %s=%s/%s", c.Type, c.Status, c.Reason)
	}
	return text
}

func (s rollBack) String() string {
	if s.Template == nil {
		return "clear rollback" + s.Event.String()
	}
	return "roll back" + s.Event.String()
}
