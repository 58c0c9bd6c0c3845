package rollout

import (
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// Moved reports whether a rollout has made progress between two statuses: there are more new pods, fewer old pods, or
// more pods that are ready or available.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, DeploymentProgressing
func Moved(was, is *appsv1.DeploymentStatus) bool {
	return is.UpdatedReplicas > was.UpdatedReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas ||
		is.AvailableReplicas > was.AvailableReplicas
}

// Complete reports whether, according to s, all pods are of the new template and available, and there are no others.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, DeploymentComplete
func (l Limits) Complete(d *appsv1.Deployment, s *appsv1.DeploymentStatus) bool {
	return s.UpdatedReplicas == l.Replicas && s.Replicas == l.Replicas && s.AvailableReplicas == l.Replicas &&
		s.ObservedGeneration >= d.Generation
}

// HasDeadline reports whether d has a progress deadline.
func HasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

// Deadline is how long a rollout of d may stand still, for a Deployment that has a progress deadline.
func Deadline(d *appsv1.Deployment) time.Duration {
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}

// Terminating is how many pods of the ReplicaSets are terminating. It is nil if the controller of a ReplicaSet has
// observed it but does not report this number.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go,
// GetTerminatingReplicaCountForReplicaSets
func Terminating(rss []*appsv1.ReplicaSet) *int32 {
	var total int32
	for _, rs := range rss {
		switch n := rs.Status.TerminatingReplicas; {
		case n != nil:
			total += *n
		case rs.Status.ObservedGeneration > 0:
			return nil
		}
	}
	return &total
}
