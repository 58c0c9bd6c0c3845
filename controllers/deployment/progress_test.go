package deployment

import (
	"math"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusWas gives the counts of a status that was written before.
func statusWas(replicas, updated, ready, available int32) deploymentChange {
	return func(d *appsv1.Deployment) {
		d.Status.ObservedGeneration = 1
		d.Status.Replicas, d.Status.UpdatedReplicas = replicas, updated
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready, available
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, syncRolloutStatus; util/deployment_util.go,
// DeploymentProgressing and DeploymentTimedOut
func TestProgressing(t *testing.T) {
	updated := func(age time.Duration) deploymentChange {
		return progressing(corev1.ConditionTrue, conditions.ReplicaSetUpdated, age)
	}
	const moved, done, late = `True/ReplicaSetUpdated ReplicaSet "web-v2" is progressing.`,
		`True/NewReplicaSetAvailable ReplicaSet "web-v2" has successfully progressed.`,
		`False/ProgressDeadlineExceeded ReplicaSet "web-v2" has timed out progressing.`
	const same = "True/ReplicaSetUpdated as it was"
	for _, tc := range []struct {
		name           string
		d              *appsv1.Deployment
		newer, old     int32 // sizes; all pods are there
		up             int32 // of the new ones
		want           string
		wantTransition bool // the status of the condition changed
	}{
		{"complete", web(3, updated(time.Hour)), 3, 0, 3, done, false},
		{"complete without a condition", web(3), 3, 0, 3, done, true},
		{"more new ones", web(3, updated(time.Hour), statusWas(5, 2, 3, 3)), 3, 2, 0, moved, false},
		{"fewer old ones", web(3, updated(time.Hour), statusWas(6, 3, 3, 3)), 3, 2, 0, moved, false},
		{"more ready", web(3, updated(time.Hour), statusWas(5, 3, 2, 9)), 3, 2, 1, moved, false},
		{"more available", web(3, updated(time.Hour), statusWas(5, 3, 9, 2)), 3, 2, 1, moved, false},
		{
			"moves again after it timed out",
			web(3, progressing(corev1.ConditionFalse, conditions.DeadlineExceeded, time.Hour), statusWas(5, 2, 3, 3)),
			3, 2, 0, moved, true,
		},
		{"moves for the first time", web(3, statusWas(5, 2, 3, 3)), 3, 2, 0, moved, true},
		{"stands still, in time", web(3, updated(600*time.Second), statusWas(5, 3, 2, 2)), 3, 2, 0, same, false},
		{"stands still for too long", web(3, updated(601*time.Second), statusWas(5, 3, 2, 2)), 3, 2, 0, late, true},
		{
			"timed out before",
			web(3, progressing(corev1.ConditionFalse, conditions.DeadlineExceeded, time.Minute), statusWas(5, 3, 2, 2)),
			3, 2, 0, "False/ProgressDeadlineExceeded as it was", false,
		},
		{"nothing to measure from", web(3, statusWas(5, 3, 2, 2)), 3, 2, 0, "", false},
		{
			"no rollout since the last: pods come and go",
			web(3, progressing(corev1.ConditionTrue, conditions.NewReplicaSetReady, time.Hour), statusWas(3, 3, 1, 1)),
			3, 0, 2, "True/NewReplicaSetAvailable as it was", false,
		},
		{
			"the next rollout is not measured from the last",
			web(3, progressing(corev1.ConditionTrue, conditions.NewReplicaSetReady, time.Hour), statusWas(5, 3, 2, 2)),
			3, 2, 0, "True/NewReplicaSetAvailable as it was", false,
		},
		{"no deadline, no condition", web(3, noDeadline, updated(time.Hour)), 3, 2, 0, "", false},
		{
			"nor with the deadline that is none", web(3, deadlineOf(math.MaxInt32), updated(time.Hour)), 3, 2, 0, "",
			false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			was := conditions.Find(&tc.d.Status, appsv1.DeploymentProgressing)
			p := plannerFor(t, tc.d, set(tc.d, 1, "v1", tc.old), set(tc.d, 2, "v2", tc.newer, availableOf(tc.up)))
			status := p.status()
			p.setProgress(&status)
			c := conditions.Find(&status, appsv1.DeploymentProgressing)
			if c == nil {
				equal(t, "condition", "", tc.want)
				return
			}
			equal(t, "condition", string(c.Status)+"/"+c.Reason+" "+c.Message, tc.want)
			if c.Message == "as it was" {
				equal(t, "unchanged", *c, *was)
				return
			}
			equal(t, "updated", c.LastUpdateTime, metav1.NewTime(epoch))
			equal(t, "transition", c.LastTransitionTime.Time.Equal(epoch), tc.wantTransition)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, syncRolloutStatus
func TestProgressOfADeploymentWithoutNewReplicaSet(t *testing.T) {
	d := web(3, recreate, statusWas(3, 0, 3, 3))
	p := plannerFor(t, d, set(d, 1, "v1", 0, counting(1)))
	status := p.status()
	p.setProgress(&status)
	equal(t, "message", conditions.Find(&status, appsv1.DeploymentProgressing).Message, `Deployment "web" is progressing.`)
}

// The deadline counts from the last movement, so each movement is written although reason and status are the same.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, syncRolloutStatus
func TestMovementIsAlwaysNoted(t *testing.T) {
	d := web(3, progressing(corev1.ConditionTrue, conditions.ReplicaSetUpdated, time.Minute), statusWas(5, 3, 2, 2))
	d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: "Other"})
	p := plannerFor(t, d, set(d, 1, "v1", 2), set(d, 2, "v2", 3, availableOf(1)))
	status := p.status()
	p.setProgress(&status)
	last := status.Conditions[len(status.Conditions)-1]
	equal(t, "last condition", last.Type, appsv1.DeploymentProgressing)
	equal(t, "transition time", last.LastTransitionTime, ago(time.Minute))
}

// Differs: see untilDeadline. With less than a second left kube-controller-manager polls; after the deadline of a
// rollout that completed it polls without end.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, requeueStuckDeployment
func TestRequeueForTheDeadline(t *testing.T) {
	stuck := func(reason string, age time.Duration, changes ...deploymentChange) Changes {
		d := web(3, changes...)
		v1, v2 := set(d, 1, "v1", 2), set(d, 2, "v2", 1, availableOf(0))
		annotate(replicasets.RevisionAnnotation, "2")(d)
		is := corev1.ConditionTrue
		if reason == conditions.DeadlineExceeded {
			is = corev1.ConditionFalse
		}
		progressing(is, reason, age)(d)
		d.Status = plannerFor(t, d, v1, v2).status()
		p := plannerFor(t, d, v1, v2)
		p.writeRolloutStatus()
		return p.plan
	}
	for _, tc := range []struct {
		name string
		plan Changes
		want time.Duration
	}{
		{
			"seven minutes left, and a second for good measure", stuck(conditions.ReplicaSetUpdated, 3*time.Minute),
			7*time.Minute + time.Second,
		},
		{"one second left", stuck(conditions.ReplicaSetUpdated, 599*time.Second), 2 * time.Second},
		{
			"less than a second left", stuck(conditions.ReplicaSetUpdated, 599*time.Second+400*time.Millisecond),
			601 * time.Millisecond,
		},
		{"none left", stuck(conditions.ReplicaSetUpdated, 600*time.Second), time.Millisecond},
		{"timed out already", stuck(conditions.DeadlineExceeded, time.Hour), 0},
		{"the last rollout completed", stuck(conditions.NewReplicaSetReady, time.Hour), 0},
		{"resumed", stuck(conditions.Resumed, time.Minute), 9*time.Minute + time.Second},
	} {
		if len(tc.plan.steps) > 0 || tc.plan.RequeueAfter != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, tc.plan, tc.want)
		}
	}
	d := web(3, noDeadline)
	if after := plannerFor(t, d).untilDeadline(); after != 0 {
		t.Errorf("no deadline: %s", after)
	}
	if after := plannerFor(t, web(3)).untilDeadline(); after != 0 {
		t.Errorf("no condition: %s", after)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/progress.go, getReplicaFailures
func TestReplicaFailure(t *testing.T) {
	failing := func(reason string) setChange {
		return func(rs *appsv1.ReplicaSet) {
			rs.Status.Conditions = []appsv1.ReplicaSetCondition{{
				Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: "m",
				LastTransitionTime: ago(time.Hour),
			}}
		}
	}
	failureOf := func(t *testing.T, d *appsv1.Deployment, rss ...*appsv1.ReplicaSet) *appsv1.DeploymentCondition {
		p := plannerFor(t, d, rss...)
		return conditions.ReplicaFailure(p.newRS, p.oldRSs)
	}
	d := web(3)
	v0, v1, v2 := set(d, 0, "v0", 1, failing("Zero")), set(d, 1, "v1", 1, failing("One")),
		set(d, 2, "v2", 1, failing("Two"))
	equal(t, "of the new one", failureOf(t, d, v0, v1, v2), &appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "Two", Message: "m",
		LastUpdateTime: ago(time.Hour), LastTransitionTime: ago(time.Hour),
	})
	equal(t, "else of the oldest", failureOf(t, d, v1, v0, set(d, 2, "v2", 1)).Reason, "Zero")
	equal(t, "none", failureOf(t, d, set(d, 2, "v2", 1)), nil)

	// It comes with a rollout's status and goes with it.
	plan := mustPlan(t, d, v2)
	status := plan.steps[len(plan.steps)-1].(updateStatus).Status
	if conditions.Find(&status, appsv1.DeploymentReplicaFailure) == nil {
		t.Errorf("not told: %s", plan)
	}
	d.Status = status
	plan = mustPlan(t, d, set(d, 2, "v2", 1))
	status = plan.steps[len(plan.steps)-1].(updateStatus).Status
	if conditions.Find(&status, appsv1.DeploymentReplicaFailure) != nil {
		t.Errorf("still told: %s", plan)
	}
}
