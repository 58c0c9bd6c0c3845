package deployment

import (
	"errors"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, syncDeployment
func TestSelectingAll(t *testing.T) {
	all := web(3, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
	event := "announce [Warning SelectingAll: This deployment is selecting all pods. A non-empty selector is required.]"
	wantSteps(t, mustPlan(t, all), event, "status generation=1 ")
	all.Status.ObservedGeneration = 1
	wantSteps(t, mustPlan(t, all), event)
	// The server may hand out an empty map where the user wrote one.
	all.Spec.Selector.MatchLabels = map[string]string{}
	wantSteps(t, mustPlan(t, all), event)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, syncDeployment. A missing
// selector makes kube-controller-manager panic.
func TestPlanErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		d    *appsv1.Deployment
		want error
	}{
		"no selector":      {web(1, func(d *appsv1.Deployment) { d.Spec.Selector = nil }), errNoSelector},
		"unknown strategy": {web(1, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Canary" }), errStrategy},
		"no percentage":    {web(1, rolling("x%", "0")), nil},
	} {
		_, err := Plan(Observed{Deployment: tc.d, Now: epoch})
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Deployment that is being deleted only learns what its ReplicaSets say.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, syncStatusOnly
func TestDeletedGetsStatusOnly(t *testing.T) {
	d := web(5, deleted, paused, annotate(appsv1.DeprecatedRollbackTo, "1"))
	wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 3)),
		"status generation=1 replicas=3 updated=0 ready=3 available=3 unavailable=0 terminating=0 "+
			"Available=False/MinimumReplicasUnavailable")
	d = settled(t, d, set(d, 1, "v1", 3))
	wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 3)))
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, checkPausedConditions
func TestPauseIsNoted(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    *appsv1.Deployment
		want string // the Progressing condition afterwards
	}{
		{
			"paused", web(1, paused, progressing(corev1.ConditionTrue, conditions.ReplicaSetUpdated, time.Minute)),
			"Unknown/DeploymentPaused Deployment is paused",
		},
		{"paused without a condition", web(1, paused), "Unknown/DeploymentPaused Deployment is paused"},
		{
			"paused already", web(1, paused, progressing(corev1.ConditionUnknown, conditions.Paused, time.Minute)),
			"Unknown/DeploymentPaused as it was",
		},
		{
			"resumed", web(1, progressing(corev1.ConditionUnknown, conditions.Paused, time.Minute)),
			"Unknown/DeploymentResumed Deployment is resumed",
		},
		{
			"failed stays failed",
			web(1, paused, progressing(corev1.ConditionFalse, conditions.DeadlineExceeded, time.Minute)),
			"False/ProgressDeadlineExceeded as it was",
		},
		{"no deadline, no note", web(1, paused, noDeadline), ""},
		{"nor with the deadline that is none", web(1, paused, deadlineOf(1<<31-1)), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := newPlanner(Observed{Deployment: tc.d, Now: epoch})
			if err != nil {
				t.Fatal(err)
			}
			p.notePause()
			got := ""
			if c := conditions.Find(&p.d.Status, appsv1.DeploymentProgressing); c != nil {
				got = string(c.Status) + "/" + c.Reason + " " + c.Message
				if changed := c.Message != "as it was"; changed != (len(p.plan.steps) == 1) || changed &&
					!c.LastUpdateTime.Time.Equal(epoch) {
					t.Errorf("%d steps, updated %s", len(p.plan.steps), c.LastUpdateTime)
				}
			}
			equal(t, "condition", got, tc.want)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, sync
func TestPausedScalesAndCleansUpButDoesNotRollOut(t *testing.T) {
	note := "status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 " +
		"Progressing=Unknown/DeploymentPaused"
	d := web(4, paused)
	t.Run("no replica set is created", func(t *testing.T) {
		wantSteps(t, mustPlan(t, d), note, "status generation=1 ")
	})
	t.Run("the template is not rolled out", func(t *testing.T) {
		wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 4)), note, "status generation=1 replicas=4 updated=0 ")
	})
	t.Run("the one that is there takes the size", func(t *testing.T) {
		wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 3, scaledFor("3", "4"))),
			"edit web-v1 replicas=4 desired-replicas=4 max-replicas=5 [Normal ScalingReplicaSet: Scaled up replica "+
				"set "+
				"web-v1 from 3 to 4]")
	})
	t.Run("history is cut", func(t *testing.T) {
		d := web(4, paused, keeping(0))
		wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 0), set(d, 2, "v2", 4)), "delete web-v1")
	})
	t.Run("but not when a rollback is asked for", func(t *testing.T) {
		d := web(4, paused, keeping(0), annotate(appsv1.DeprecatedRollbackTo, "1"))
		wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 0), set(d, 2, "v2", 4)))
	})
}

// A paused Deployment's revision follows its ReplicaSet's in the next sync.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestPausedRevisionFollowsLater(t *testing.T) {
	d := web(4, paused)
	v1, v2 := set(d, 3, "v1", 4), set(d, 2, "v2", 0)
	d = settled(t, d, set(d, 3, "v1", 4))
	d.Annotations = map[string]string{replicasets.RevisionAnnotation: "3"}
	wantSteps(t, mustPlan(t, d, v1, v2), "edit web-v2 revision=4 revision-history=2")
	v2 = editReplicaSet{
		Annotations: map[string]string{replicasets.RevisionAnnotation: "4", replicasets.RevisionHistoryAnnotation: "2"},
	}.result(v2)
	wantSteps(t, mustPlan(t, d, v1, v2),
		"status generation=1 replicas=4 updated=0 ready=4 available=4 unavailable=0 terminating=0 revision=4 ")
}

// Nothing is written when nothing changed.
func TestNoStepsWithoutAChange(t *testing.T) {
	for name, d := range map[string]*appsv1.Deployment{
		"rolling": web(3), "recreate": web(3, recreate), "paused": web(3, paused), "none": web(0),
		"deleted": web(3, deleted),
	} {
		v2 := set(d, 1, "v2", *d.Spec.Replicas)
		if plan := mustPlan(t, settled(t, d, v2), v2); len(plan.steps) > 0 || plan.RequeueAfter != 0 {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}

func TestStepsAsText(t *testing.T) {
	plan := Changes{steps: []step{
		announce{normal("Reason", "message %d", 1)},
		rollBack{Event: warning("Why", "not")},
		rollBack{Template: &corev1.PodTemplateSpec{}},
		updateStatus{Status: appsv1.DeploymentStatus{CollisionCount: new(int32)}},
	}, RequeueAfter: time.Second}
	wantSteps(t, plan, "announce [Normal Reason: message 1]", "clear rollback [Warning Why: not]", "roll back",
		"status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 collisions=0", "requeue after 1s")
}
