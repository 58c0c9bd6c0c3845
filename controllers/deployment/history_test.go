package deployment

import (
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, cleanupDeployment
func TestCleanUpHistory(t *testing.T) {
	d := web(3)
	behind := func(rs *appsv1.ReplicaSet) { rs.Generation = 2 }
	going := func(rs *appsv1.ReplicaSet) { rs.DeletionTimestamp = ptr.To(ago(0)) }
	revision := func(n string) setChange { return annotateSet(replicasets.RevisionAnnotation, n) }
	for _, tc := range []struct {
		name  string
		limit int32
		old   []*appsv1.ReplicaSet
		want  []string
	}{
		{"few enough", 3, []*appsv1.ReplicaSet{set(d, 1, "a", 0), set(d, 2, "b", 0), set(d, 3, "c", 0)}, nil},
		{
			"the oldest go", 1,
			[]*appsv1.ReplicaSet{set(d, 3, "c", 0), set(d, 1, "a", 0), set(d, 2, "b", 0)},
			[]string{"delete web-a", "delete web-b"},
		},
		{
			"all go", 0,
			[]*appsv1.ReplicaSet{set(d, 1, "a", 0), set(d, 2, "b", 0)},
			[]string{"delete web-a", "delete web-b"},
		},
		{
			"by revision, not by age", 1,
			[]*appsv1.ReplicaSet{set(d, 1, "a", 0, revision("9")), set(d, 2, "b", 0)},
			[]string{"delete web-b"},
		},
		{
			"of one revision by age", 1,
			[]*appsv1.ReplicaSet{set(d, 1, "b", 0, revision("1")), set(d, 2, "a", 0, revision("1"))},
			[]string{"delete web-b"},
		},
		{
			"one whose revision is no number by age", 1,
			[]*appsv1.ReplicaSet{set(d, 1, "a", 0, revision("9")), set(d, 2, "b", 0, revision("x"))},
			[]string{"delete web-a"},
		},
		{
			"one with a size is spared, and none taken instead", 1,
			[]*appsv1.ReplicaSet{set(d, 1, "a", 2), set(d, 2, "b", 0)},
			nil,
		},
		{"and one with pods", 1, []*appsv1.ReplicaSet{set(d, 1, "a", 0, counting(1)), set(d, 2, "b", 0)}, nil},
		{
			"and one whose counts are outdated", 1,
			[]*appsv1.ReplicaSet{set(d, 1, "a", 0, behind), set(d, 2, "b", 0)},
			nil,
		},
		{
			"one on its way out does not count", 1,
			[]*appsv1.ReplicaSet{set(d, 1, "a", 0, going), set(d, 2, "b", 0)},
			nil,
		},
		{"no limit", 1<<31 - 1, []*appsv1.ReplicaSet{set(d, 1, "a", 0)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := newPlanner(Observed{Deployment: web(3, keeping(tc.limit)), ReplicaSets: tc.old, Now: epoch})
			if err != nil {
				t.Fatal(err)
			}
			p.cleanUpHistory()
			wantSteps(t, p.plan, tc.want...)
		})
	}
	p, err := newPlanner(
		Observed{
			Deployment:  web(3, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = nil }),
			ReplicaSets: []*appsv1.ReplicaSet{set(d, 1, "a", 0)}, Now: epoch,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	p.cleanUpHistory()
	wantSteps(t, p.plan)
}

// Differs: kube-controller-manager scales the ReplicaSet up and deletes it in one sync.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, sync
func TestHistoryKeepsAScaledUpReplicaSet(t *testing.T) {
	d := web(3, paused, keeping(0), noDeadline)
	wantSteps(t, mustPlan(t, d, set(d, 1, "v0", 0), set(d, 2, "v1", 0)), "edit web-v1 replicas=3 ", "delete web-v0")
}
