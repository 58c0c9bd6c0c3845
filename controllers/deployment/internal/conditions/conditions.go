// Package conditions reads and changes the conditions in a Deployment's status.
package conditions

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Progressing.
const (
	ReplicaSetUpdated     = "ReplicaSetUpdated"        // the rollout moves
	ReplicaSetCreateError = "ReplicaSetCreateError"    // the API server refused the new ReplicaSet
	ReplicaSetRewritten   = "ReplicaSetRewritten"      // the new ReplicaSet is changed whenever it is created
	NewReplicaSetCreated  = "NewReplicaSetCreated"     // the rollout begins
	FoundNewReplicaSet    = "FoundNewReplicaSet"       // the deadline was set when the ReplicaSet existed already
	NewReplicaSetReady    = "NewReplicaSetAvailable"   // the rollout is complete
	DeadlineExceeded      = "ProgressDeadlineExceeded" // the rollout does not move
	Paused                = "DeploymentPaused"
	Resumed               = "DeploymentResumed"
)

// Reasons of the condition Available.
const (
	MinimumAvailable   = "MinimumReplicasAvailable"
	MinimumUnavailable = "MinimumReplicasUnavailable"
)

// Find returns the condition of the given type, or nil. It points into the status: read only.
func Find(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	i := slices.IndexFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// New returns a condition that began at now.
func New(t appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string,
	now time.Time,
) appsv1.DeploymentCondition {
	at := metav1.NewTime(now)
	return appsv1.DeploymentCondition{
		Type: t, Status: status, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
}

// Set puts c at the end of the conditions, in place of the one of its type. If status and reason stay the same nothing
// changes, not even the message. If only the status stays the same, the time of the last transition is kept.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetDeploymentCondition
func Set(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if was := Find(s, c.Type); was != nil && was.Status == c.Status {
		if was.Reason == c.Reason {
			return
		}
		c.LastTransitionTime = was.LastTransitionTime
	}
	Remove(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

// Remove removes the condition of the given type. It leaves a new slice, or nil if no condition is left.
func Remove(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	var kept []appsv1.DeploymentCondition
	for _, c := range s.Conditions {
		if c.Type != t {
			kept = append(kept, c)
		}
	}
	s.Conditions = kept
}

// ReplicaFailure returns the ReplicaFailure condition of the new ReplicaSet, else of the first old one that has it, as
// a condition of the Deployment. Nil means that pods can be created and deleted.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, getReplicaFailures
func ReplicaFailure(newRS *appsv1.ReplicaSet, oldRSs []*appsv1.ReplicaSet) *appsv1.DeploymentCondition {
	rss := oldRSs
	if newRS != nil {
		rss = append([]*appsv1.ReplicaSet{newRS}, rss...)
	}
	for _, rs := range rss {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{
					Type:               appsv1.DeploymentReplicaFailure,
					Status:             c.Status,
					Reason:             c.Reason,
					Message:            c.Message,
					LastUpdateTime:     c.LastTransitionTime,
					LastTransitionTime: c.LastTransitionTime,
				}
			}
		}
	}
	return nil
}
