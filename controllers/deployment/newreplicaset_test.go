package deployment

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestCreateNewReplicaSet(t *testing.T) {
	d := web(10, annotate("cause", "x"), func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 7
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpExists},
		}
		d.Labels = map[string]string{"not": "copied"}
	})
	hash := replicasets.ComputeHash(&d.Spec.Template, nil)
	name := "web-" + hash
	plan := mustPlan(t, d, set(d, 4, "v1", 10))
	wantSteps(t, plan,
		"create "+name+" replicas=3 cause=x desired-replicas=10 max-replicas=13 revision=5 "+
			"[Normal ScalingReplicaSet: Scaled up replica set "+name+" from 0 to 3]",
		"status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 revision=5 "+
			"Progressing=True/NewReplicaSetCreated",
		"edit web-v1 replicas=8 [Normal ScalingReplicaSet: Scaled down replica set web-v1 from 10 to 8]",
		"status generation=1 ")
	labels := map[string]string{"app": "web", "pod-template-hash": hash}
	template := d.Spec.Template
	template.Labels = labels
	equal(t, "replica set", plan.steps[0].(createReplicaSet).ReplicaSet, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: labels,
			Annotations: map[string]string{
				"cause": "x", replicasets.RevisionAnnotation: "5",
				replicasets.DesiredReplicasAnnotation: "10", replicasets.MaxReplicasAnnotation: "13",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web-uid", Controller: ptr.To(true),
				BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](3), MinReadySeconds: 7, Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: d.Spec.Selector.MatchExpressions},
		},
	})
	status := plan.steps[1].(updateStatus).Status
	c := conditions.Find(&status, appsv1.DeploymentProgressing)
	equal(t, "message", c.Message, `Created new replica set "`+name+`"`)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestCreateNewReplicaSetWithoutPodsOrDeadline(t *testing.T) {
	d := web(10, noDeadline)
	name := "web-" + replicasets.ComputeHash(&d.Spec.Template, nil)
	plan := mustPlan(t, d, set(d, 1, "v1", 13, availableOf(0)))
	wantSteps(t, plan, "create "+name+" replicas=0",
		"status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 revision=2",
		"edit web-v1 replicas=8 ", "status ")
	d.Status.CollisionCount = ptr.To[int32](2)
	other := "web-" + replicasets.ComputeHash(&d.Spec.Template, ptr.To[int32](2))
	if got := mustPlan(t, d).steps[0].String(); name == other || !strings.HasPrefix(got, "create "+other) {
		t.Errorf("after two collisions: %s", got)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, NewRSNewReplicas
func TestAllowedSize(t *testing.T) {
	for _, tc := range []struct {
		name      string
		d         *appsv1.Deployment
		old, size int32
		want      int32
	}{
		{"first rollout", web(10), 0, 0, 10},
		{"as far as the surge goes", web(10, rolling("3", "2")), 10, 0, 3},
		{"room from old ones that went", web(10, rolling("3", "2")), 8, 3, 5},
		{"not past the size", web(10, rolling("3", "2")), 1, 8, 10},
		{"no room", web(10, rolling("3", "2")), 13, 0, 0},
		{"less than none", web(10, rolling("3", "2")), 20, 1, 1},
		{"no surge", web(10, rolling("0", "1")), 10, 0, 0},
		{"recreate takes all", web(10, recreate), 10, 0, 10},
	} {
		old := set(tc.d, 1, "v1", tc.old)
		p, err := newPlanner(Observed{Deployment: tc.d, ReplicaSets: []*appsv1.ReplicaSet{old}, Now: epoch})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.allowedSize(set(tc.d, 2, "v2", tc.size)); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestExistingNewReplicaSetIsKeptUpToDate(t *testing.T) {
	base := web(3, annotate(replicasets.RevisionAnnotation, "2"))
	v1, v2 := set(base, 1, "v1", 0), set(base, 2, "v2", 3)
	base = settled(t, base, v1, v2)
	change := func(changes ...deploymentChange) *appsv1.Deployment {
		d := base.DeepCopy()
		for _, c := range changes {
			c(d)
		}
		return d
	}
	t.Run("annotations", func(t *testing.T) {
		wantSteps(t, mustPlan(t, change(annotate("cause", "x")), v1, v2), "edit web-v2 cause=x")
	})
	t.Run("minReadySeconds, down as well", func(t *testing.T) {
		wantSteps(t, mustPlan(t, change(func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 }), v1, v2),
			"edit web-v2 minReadySeconds=5")
		slow := v2.DeepCopy()
		slow.Spec.MinReadySeconds = 9
		wantSteps(t, mustPlan(t, base, v1, slow), "edit web-v2 minReadySeconds=0")
	})
	t.Run("revision of the deployment", func(t *testing.T) {
		plan := mustPlan(t, change(annotate(replicasets.RevisionAnnotation, "1")), v1, v2)
		wantSteps(t, plan,
			"status generation=1 replicas=3 updated=3 ready=3 available=3 unavailable=0 terminating=0 revision=2 ")
	})
	t.Run("rolled back to: revision of both, then the rollout", func(t *testing.T) {
		d := change(func(d *appsv1.Deployment) { d.Spec.Template = template("v1") })
		wantSteps(t, mustPlan(t, d, v1, v2), "edit web-v1 revision=3 revision-history=1",
			"status generation=1 replicas=3 updated=3 ready=3 available=3 unavailable=0 terminating=0 revision=3 ",
			"edit web-v1 replicas=1 ", "status generation=1 replicas=3 updated=0 ")
	})
	t.Run("a revision that is no number does not count, nor is it mended", func(t *testing.T) {
		broken := set(base, 2, "v2", 3, annotateSet(replicasets.RevisionAnnotation, "x"))
		wantSteps(t, mustPlan(t, base, v1, broken),
			"status generation=1 replicas=3 updated=3 ready=3 available=3 unavailable=0 terminating=0 revision=x ")
		wantSteps(t, mustPlan(t, base, set(base, 1, "v1", 0, annotateSet(replicasets.RevisionAnnotation, "x")), v2))
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestFoundNewReplicaSet(t *testing.T) {
	d := web(3, annotate(replicasets.RevisionAnnotation, "1"))
	plan := mustPlan(t, d, set(d, 1, "v2", 3, availableOf(0)))
	first := plan.steps[0].(updateStatus)
	c := conditions.Find(&first.Status, appsv1.DeploymentProgressing)
	equal(t, "condition", *c, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "FoundNewReplicaSet",
		Message:        `Found new replica set "web-v2"`,
		LastUpdateTime: metav1.NewTime(epoch), LastTransitionTime: metav1.NewTime(epoch),
	})
	wantSteps(t, mustPlan(t, web(3, noDeadline, annotate(replicasets.RevisionAnnotation, "1")), set(d, 1, "v2", 3)),
		"status generation=1 ")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestCollision(t *testing.T) {
	d := web(3)
	wantSteps(t, planCollision(d),
		"status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 collisions=1")
	d.Status.CollisionCount = ptr.To[int32](1)
	wantSteps(t, planCollision(d),
		"status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 collisions=2")
	equal(t, "observed", *d.Status.CollisionCount, 1)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet. Differs: a failure that the
// status tells already is not written again.
func TestCreateFailure(t *testing.T) {
	refused := errors.New("quota exceeded")
	event := `announce [Warning ReplicaSetCreateError: Failed to create new replica set "web-x": quota exceeded]`
	plan := planCreateFailure(Observed{Deployment: web(3), Now: epoch}, "web-x", refused)
	wantSteps(t, plan, event,
		"status generation=0 replicas=0 updated=0 ready=0 available=0 unavailable=0 "+
			"Progressing=False/ReplicaSetCreateError")
	equal(t, "message", plan.steps[1].(updateStatus).Status.Conditions[0].Message,
		`Failed to create new replica set "web-x": quota exceeded`)
	wantSteps(t, planCreateFailure(Observed{Deployment: web(3, noDeadline), Now: epoch}, "web-x", refused), event)
	again := web(3, progressing(corev1.ConditionFalse, conditions.ReplicaSetCreateError, time.Minute))
	wantSteps(t, planCreateFailure(Observed{Deployment: again, Now: epoch}, "web-x", refused), event)
}
