package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// writeStatus writes the counts and the condition Available, if they changed.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, syncDeploymentStatus
func (p *planner) writeStatus() {
	status := p.status()
	if equality.Semantic.DeepEqual(p.d.Status, status) {
		return
	}
	p.d.Status = status
	p.writeDeploymentStatus()
}

// status is what the ReplicaSets, as they were observed, say about the Deployment. It shares nothing with p.d that
// is changed later.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, calculateStatus
func (p *planner) status() appsv1.DeploymentStatus {
	all := p.all()
	availableReplicas := sum(all, available)
	s := appsv1.DeploymentStatus{
		ObservedGeneration: p.d.Generation,
		Replicas:           sum(all, statusReplicas),
		UpdatedReplicas:    sum(asList(p.newRS), statusReplicas),
		ReadyReplicas:      sum(all, ready),
		AvailableReplicas:  availableReplicas,
		// While pods are being removed more may be available than are asked for.
		UnavailableReplicas: max(0, totalSize(all)-availableReplicas),
		TerminatingReplicas: terminating(all),
		CollisionCount:      p.d.Status.CollisionCount,
		Conditions:          append([]appsv1.DeploymentCondition(nil), p.d.Status.Conditions...),
	}
	c := newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonMinimumUnavailable,
		"Deployment does not have minimum availability.", p.observed.Now)
	if availableReplicas >= p.limits.minAvailable() {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, reasonMinimumAvailable,
			"Deployment has minimum availability."
	}
	setCondition(&s, c)
	return s
}

// terminating is how many pods of the ReplicaSets are terminating. Nil when one of them was seen by its controller
// but does not say.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go,
// GetTerminatingReplicaCountForReplicaSets
func terminating(rss []*appsv1.ReplicaSet) *int32 {
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

// complete reports whether, by the given status, all pods are of the new template and available, and no others are
// there.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, DeploymentComplete
func complete(d *appsv1.Deployment, s *appsv1.DeploymentStatus, replicas int32) bool {
	return s.UpdatedReplicas == replicas && s.Replicas == replicas && s.AvailableReplicas == replicas &&
		s.ObservedGeneration >= d.Generation
}
