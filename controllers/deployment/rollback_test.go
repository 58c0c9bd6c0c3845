package deployment

import (
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rollback.go, getRollbackTo
func TestRollbackTarget(t *testing.T) {
	for value, want := range map[string]int64{"0": 0, "3": 3, "-1": -1, "+2": 2} {
		if n, ok := rollbackTarget(web(1, annotate(appsv1.DeprecatedRollbackTo, value))); n != want || !ok {
			t.Errorf("%q: %d, %t", value, n, ok)
		}
	}
	for _, value := range []string{"", "x", "1.5", "99999999999999999999"} {
		if _, ok := rollbackTarget(web(1, annotate(appsv1.DeprecatedRollbackTo, value))); ok {
			t.Errorf("%q is taken for a revision", value)
		}
	}
	if _, ok := rollbackTarget(web(1)); ok {
		t.Error("nothing is taken for a revision")
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rollback.go, rollback and rollbackToTemplate
func TestRollback(t *testing.T) {
	const notFound = "clear rollback [Warning DeploymentRollbackRevisionNotFound: Unable to find the revision to " +
		"rollback to.]"
	const unchanged = `clear rollback [Warning DeploymentRollbackTemplateUnchanged: The rollback revision contains the same template as current deployment "web"]`
	to := func(revision string) *appsv1.Deployment {
		return web(3, annotate(appsv1.DeprecatedRollbackTo, revision), annotate(replicasets.RevisionAnnotation, "3"),
			noDeadline)
	}
	d := to("1")
	v0, v1, v2 := set(d, 1, "v0", 0), set(d, 2, "v1", 0), set(d, 3, "v2", 3)
	garbled := set(d, 1, "v0", 0, annotateSet(replicasets.RevisionAnnotation, "x"))
	for _, tc := range []struct {
		name, revision string
		rss            []*appsv1.ReplicaSet
		want           string
	}{
		{
			"to a revision", "1",
			[]*appsv1.ReplicaSet{v0, v1, v2},
			`roll back [Normal DeploymentRollback: Rolled back deployment "web" to revision 1]`,
		},
		{
			"to the last but one", "0",
			[]*appsv1.ReplicaSet{v0, v1, v2},
			`roll back [Normal DeploymentRollback: Rolled back deployment "web" to revision 2]`,
		},
		{
			"the last but one, whatever comes between", "0",
			[]*appsv1.ReplicaSet{v0, v2},
			`roll back [Normal DeploymentRollback: Rolled back deployment "web" to revision 1]`,
		},
		{
			"there is only one", "0",
			[]*appsv1.ReplicaSet{v2},
			"clear rollback [Warning DeploymentRollbackRevisionNotFound: Unable to find last revision.]",
		},
		{"there is no such revision", "7", []*appsv1.ReplicaSet{v0, v1, v2}, notFound},
		{"nor a negative one", "-1", []*appsv1.ReplicaSet{v0, v1, v2}, notFound},
		{"one that is no number is not found", "1", []*appsv1.ReplicaSet{garbled, v1, v2}, notFound},
		{"to itself", "3", []*appsv1.ReplicaSet{v0, v1, v2}, unchanged},
	} {
		t.Run(tc.name, func(t *testing.T) { wantSteps(t, mustPlan(t, to(tc.revision), tc.rss...), tc.want) })
	}
	t.Run("the new replica set is there first", func(t *testing.T) {
		name := "web-" + replicasets.ComputeHash(&d.Spec.Template, nil)
		wantSteps(t, mustPlan(t, to("2"), v0, v1), "create "+name+" replicas=3 ", `roll back `)
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetDeploymentAnnotationsTo and
// SetFromReplicaSetTemplate
func TestRollbackWrites(t *testing.T) {
	d := web(3, annotate(appsv1.DeprecatedRollbackTo, "1"), annotate(replicasets.RevisionAnnotation, "2"),
		annotate("cause", "second"),
		annotate("gone", "x"), annotate(corev1.LastAppliedConfigAnnotation, "{}"), noDeadline)
	v1 := set(d, 1, "v1", 0, annotateSet("cause", "first"), annotateSet(replicasets.RevisionHistoryAnnotation, "0"))
	v2 := set(d, 2, "v2", 3, annotateSet("cause", "second"), annotateSet("gone", "x"))
	plan := mustPlan(t, d, v1, v2)
	rollback := plan.steps[len(plan.steps)-1].(rollBack)
	equal(t, "annotations", rollback.Annotations, map[string]string{
		replicasets.RevisionAnnotation: "2", "cause": "first", corev1.LastAppliedConfigAnnotation: "{}",
	})
	want := template("v1")
	equal(t, "template", rollback.Template, &want)
	// Giving up leaves all but the request.
	annotate(appsv1.DeprecatedRollbackTo, "9")(d)
	plan = mustPlan(t, d, v1, v2)
	equal(t, "annotations when given up", plan.steps[len(plan.steps)-1].(rollBack).Annotations, map[string]string{
		replicasets.RevisionAnnotation: "2", "cause": "second", "gone": "x", corev1.LastAppliedConfigAnnotation: "{}",
	})
}
