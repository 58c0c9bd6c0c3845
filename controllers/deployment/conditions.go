package deployment

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Progressing.
const (
	reasonReplicaSetUpdated     = "ReplicaSetUpdated"        // the rollout moves
	reasonReplicaSetCreateError = "ReplicaSetCreateError"    // the new ReplicaSet was refused
	reasonNewReplicaSetCreated  = "NewReplicaSetCreated"     // the rollout begins
	reasonFoundNewReplicaSet    = "FoundNewReplicaSet"       // the deadline was set after the ReplicaSet was there
	reasonNewReplicaSetReady    = "NewReplicaSetAvailable"   // the rollout is complete
	reasonDeadlineExceeded      = "ProgressDeadlineExceeded" // the rollout does not move
	reasonPaused                = "DeploymentPaused"
	reasonResumed               = "DeploymentResumed"
)

// Reasons of the condition Available.
const (
	reasonMinimumAvailable   = "MinimumReplicasAvailable"
	reasonMinimumUnavailable = "MinimumReplicasUnavailable"
)

// condition returns the condition of the given type, or nil. It points into the status: read only.
func condition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	i := slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// newCondition is a condition that came about at now. The message is filled in by the caller.
func newCondition(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string,
	now time.Time,
) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{
		Type: t, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
}

// setCondition puts c into the status, last. Where the status and the reason are what they were nothing changes, not
// even the message. Where only the status is what it was, the time of the last transition stays.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, SetDeploymentCondition
func setCondition(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if was := condition(s, c.Type); was != nil && was.Status == c.Status {
		if was.Reason == c.Reason {
			return
		}
		c.LastTransitionTime = was.LastTransitionTime
	}
	removeCondition(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

// removeCondition takes the condition out. The slice it leaves is a new one, or nil when nothing is left.
func removeCondition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	var kept []appsv1.DeploymentCondition
	for _, c := range s.Conditions {
		if c.Type != t {
			kept = append(kept, c)
		}
	}
	s.Conditions = kept
}
