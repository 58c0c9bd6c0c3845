package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// writeRolloutStatus writes the status of a rollout, if it changed: the counts, Available, Progressing and
// ReplicaFailure. If it did not change, the plan looks again when the deadline has passed.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/progress.go, syncRolloutStatus
func (p *planner) writeRolloutStatus() {
	status := p.status()
	p.estimateProgress(&status)
	if c := p.replicaFailure(); c != nil {
		setCondition(&status, *c)
	} else {
		removeCondition(&status, appsv1.DeploymentReplicaFailure)
	}
	if equality.Semantic.DeepEqual(p.d.Status, status) {
		p.plan.RequeueAfter = p.untilDeadline()
		return
	}
	p.d.Status = status
	p.writeDeploymentStatus()
}

// estimateProgress sets the condition Progressing of the status that is about to be written.
func (p *planner) estimateProgress(status *appsv1.DeploymentStatus) {
	if !hasDeadline(p.d) {
		removeCondition(status, appsv1.DeploymentProgressing)
		return
	}
	current := condition(&p.d.Status, appsv1.DeploymentProgressing)
	if current != nil && current.Reason == reasonNewReplicaSetReady && status.Replicas == status.UpdatedReplicas {
		return // no rollout since the last one completed
	}
	subject := fmt.Sprintf("Deployment %q", p.d.Name)
	if p.newRS != nil {
		subject = fmt.Sprintf("ReplicaSet %q", p.newRS.Name)
	}
	progressing := func(s corev1.ConditionStatus, reason, what string) appsv1.DeploymentCondition {
		return newCondition(appsv1.DeploymentProgressing, s, reason, subject+what, p.observed.Now)
	}
	switch {
	case complete(p.d, status, p.limits.replicas):
		setCondition(status,
			progressing(corev1.ConditionTrue, reasonNewReplicaSetReady, " has successfully progressed."))
	case moved(&p.d.Status, status):
		c := progressing(corev1.ConditionTrue, reasonReplicaSetUpdated, " is progressing.")
		if current != nil && current.Status == corev1.ConditionTrue {
			c.LastTransitionTime = current.LastTransitionTime
		}
		// Replaced even if status and reason are what they were: the deadline counts from the last update.
		removeCondition(status, appsv1.DeploymentProgressing)
		setCondition(status, c)
	case p.timedOut(current):
		setCondition(status, progressing(corev1.ConditionFalse, reasonDeadlineExceeded, " has timed out progressing."))
	}
}

// moved reports whether there are more new pods, fewer old ones, or more that are ready or available.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, DeploymentProgressing
func moved(was, is *appsv1.DeploymentStatus) bool {
	return is.UpdatedReplicas > was.UpdatedReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas ||
		is.AvailableReplicas > was.AvailableReplicas
}

// timedOut reports whether the rollout stood still for longer than its deadline. Once it has, that is so until it
// moves again. A rollout that completed cannot time out: the next one gets a condition of its own.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, DeploymentTimedOut
func (p *planner) timedOut(current *appsv1.DeploymentCondition) bool {
	switch {
	case current == nil || current.Reason == reasonNewReplicaSetReady:
		return false
	case current.Reason == reasonDeadlineExceeded:
		return true
	}
	return current.LastUpdateTime.Add(deadline(p.d)).Before(p.observed.Now)
}

// untilDeadline is how long to wait before the rollout, which stands still, may have timed out; zero when it cannot.
//
// Differs: kube-controller-manager looks again every few milliseconds when less than a second is left, and does so
// without end when a rollout that completed longer ago than its deadline loses a pod. Here the wait ends once, just
// after the deadline, and what cannot time out is not waited for.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/progress.go, requeueStuckDeployment
func (p *planner) untilDeadline() time.Duration {
	current := condition(&p.d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(p.d) || current == nil || complete(p.d, &p.d.Status, p.limits.replicas) {
		return 0
	}
	if current.Reason == reasonDeadlineExceeded || current.Reason == reasonNewReplicaSetReady {
		return 0
	}
	left := max(0, current.LastUpdateTime.Add(deadline(p.d)).Sub(p.observed.Now))
	if left < time.Second {
		return left + time.Millisecond
	}
	return left + time.Second
}

// replicaFailure is the ReplicaFailure condition of the new ReplicaSet, else of the oldest that has one, as the
// Deployment's own. Nil: pods can be created and deleted.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/progress.go, getReplicaFailures
func (p *planner) replicaFailure() *appsv1.DeploymentCondition {
	for _, rs := range append(asList(p.newRS), p.oldRSs...) {
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

// hasDeadline reports whether progress is watched at all.
func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}

// deadline is how long a rollout may stand still. Only for a Deployment that has one.
func deadline(d *appsv1.Deployment) time.Duration {
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}
