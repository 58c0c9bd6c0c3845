package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
)

// writeStatus writes the counts and the condition Available, if they changed.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, syncDeploymentStatus
func (p *planner) writeStatus() { p.writeStatusIfChanged(p.status()) }

func (p *planner) writeStatusIfChanged(status appsv1.DeploymentStatus) {
	if equality.Semantic.DeepEqual(p.d.Status, status) {
		return
	}
	p.d.Status = status
	p.writeDeploymentStatus()
}

// status computes the Deployment's status from the ReplicaSets as they were observed. It shares no memory with p.d
// that is changed later.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, calculateStatus
func (p *planner) status() appsv1.DeploymentStatus {
	all := p.all()
	s := appsv1.DeploymentStatus{
		ObservedGeneration:  p.d.Generation,
		TerminatingReplicas: rollout.Terminating(all),
		CollisionCount:      p.d.Status.CollisionCount,
		Conditions:          append([]appsv1.DeploymentCondition(nil), p.d.Status.Conditions...),
	}
	for _, rs := range all {
		s.Replicas += rs.Status.Replicas
		s.ReadyReplicas += rs.Status.ReadyReplicas
		s.AvailableReplicas += rs.Status.AvailableReplicas
	}
	if p.newRS != nil {
		s.UpdatedReplicas = p.newRS.Status.Replicas
	}
	// While pods are being removed, more may be available than the ReplicaSets ask for.
	s.UnavailableReplicas = max(0, replicasets.TotalSize(all)-s.AvailableReplicas)

	c := conditions.New(appsv1.DeploymentAvailable, corev1.ConditionFalse, conditions.MinimumUnavailable,
		"Deployment does not have minimum availability.", p.observed.Now)
	if s.AvailableReplicas >= p.limits.MinAvailable() {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, conditions.MinimumAvailable,
			"Deployment has minimum availability."
	}
	conditions.Set(&s, c)
	return s
}
