package deployment

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
)

// writeRolloutStatus writes the status of a rollout, if it changed: the counts and the conditions Available,
// Progressing and ReplicaFailure. If it did not change, the plan is to look again when the deadline has passed.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, syncRolloutStatus
func (p *planner) writeRolloutStatus() {
	status := p.status()
	p.setProgress(&status)
	if c := conditions.ReplicaFailure(p.newRS, p.oldRSs); c != nil {
		conditions.Set(&status, *c)
	} else {
		conditions.Remove(&status, appsv1.DeploymentReplicaFailure)
	}
	if equality.Semantic.DeepEqual(p.d.Status, status) {
		p.plan.RequeueAfter = p.untilDeadline()
		return
	}
	p.d.Status = status
	p.writeDeploymentStatus()
}

// setProgress sets the condition Progressing of the status that is about to be written.
func (p *planner) setProgress(status *appsv1.DeploymentStatus) {
	if !rollout.HasDeadline(p.d) {
		conditions.Remove(status, appsv1.DeploymentProgressing)
		return
	}
	current := conditions.Find(&p.d.Status, appsv1.DeploymentProgressing)
	if current != nil && current.Reason == conditions.NewReplicaSetReady && status.Replicas == status.UpdatedReplicas {
		return // no rollout since the last one completed
	}
	subject := fmt.Sprintf("Deployment %q", p.d.Name)
	if p.newRS != nil {
		subject = fmt.Sprintf("ReplicaSet %q", p.newRS.Name)
	}
	progressing := func(s corev1.ConditionStatus, reason, what string) appsv1.DeploymentCondition {
		return conditions.New(appsv1.DeploymentProgressing, s, reason, subject+what, p.observed.Now)
	}
	switch {
	case p.limits.Complete(p.d, status):
		conditions.Set(status,
			progressing(corev1.ConditionTrue, conditions.NewReplicaSetReady, " has successfully progressed."))
	case rollout.Moved(&p.d.Status, status):
		c := progressing(corev1.ConditionTrue, conditions.ReplicaSetUpdated, " is progressing.")
		if current != nil && current.Status == corev1.ConditionTrue {
			c.LastTransitionTime = current.LastTransitionTime
		}
		// The condition is replaced even if status and reason stay the same: the deadline counts from the last update.
		conditions.Remove(status, appsv1.DeploymentProgressing)
		conditions.Set(status, c)
	case p.timedOut(current):
		conditions.Set(status,
			progressing(corev1.ConditionFalse, conditions.DeadlineExceeded, " has timed out progressing."))
	}
}

// timedOut reports whether the rollout has not moved for longer than its deadline. That stays true until the rollout
// moves again. A rollout that is complete cannot time out: the next one gets a condition of its own.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, DeploymentTimedOut
func (p *planner) timedOut(current *appsv1.DeploymentCondition) bool {
	switch {
	case current == nil || current.Reason == conditions.NewReplicaSetReady:
		return false
	case current.Reason == conditions.DeadlineExceeded:
		return true
	}
	return p.untilTimeout(current) < 0
}

// untilDeadline is how long to wait until a rollout that does not move may have timed out. Zero means that it cannot.
//
// Differs: kube-controller-manager looks again every few milliseconds when less than a second is left. It does so
// forever if a rollout that completed longer ago than its deadline loses a pod. Here the wait ends once, just after the
// deadline, and there is no wait if the rollout cannot time out.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, requeueStuckDeployment
func (p *planner) untilDeadline() time.Duration {
	current := conditions.Find(&p.d.Status, appsv1.DeploymentProgressing)
	if !rollout.HasDeadline(p.d) || current == nil || p.limits.Complete(p.d, &p.d.Status) {
		return 0
	}
	if current.Reason == conditions.DeadlineExceeded || current.Reason == conditions.NewReplicaSetReady {
		return 0
	}
	left := max(0, p.untilTimeout(current))
	if left < time.Second {
		return left + time.Millisecond
	}
	return left + time.Second
}

// untilTimeout is the time that is left until the deadline, for a Deployment that has one. It is negative afterwards.
func (p *planner) untilTimeout(current *appsv1.DeploymentCondition) time.Duration {
	return current.LastUpdateTime.Add(rollout.Deadline(p.d)).Sub(p.observed.Now)
}
