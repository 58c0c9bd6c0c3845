package deployment

import (
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// rollingPlan is the plan for ReplicaSets v1 (and v0, older) and the new one, v2, of a Deployment that has a revision.
func rollingPlan(t *testing.T, d *appsv1.Deployment, rss ...*appsv1.ReplicaSet) Changes {
	t.Helper()
	d = d.DeepCopy()
	annotate(replicasets.RevisionAnnotation, "2")(d)
	return mustPlan(t, d, rss...)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, reconcileNewReplicaSet
func TestNewReplicaSetGrowsFirst(t *testing.T) {
	d := web(10, rolling("3", "2"))
	for _, tc := range []struct {
		name string
		rss  []*appsv1.ReplicaSet
		want []string
	}{
		{
			"as far as the surge allows, and nothing else",
			[]*appsv1.ReplicaSet{set(d, 1, "v1", 8), set(d, 2, "v2", 3)},
			[]string{"edit web-v2 replicas=5 [Normal ScalingReplicaSet: Scaled up replica set web-v2 from 3 to 5]"},
		},
		{
			"too large: down to its size",
			[]*appsv1.ReplicaSet{set(d, 1, "v1", 2), set(d, 2, "v2", 12)},
			[]string{
				"edit web-v2 replicas=10 [Normal ScalingReplicaSet: Scaled down replica set web-v2 from 12 to 10]",
			},
		},
		{
			"the right size: the old ones' turn",
			[]*appsv1.ReplicaSet{set(d, 1, "v1", 2), set(d, 2, "v2", 10)},
			[]string{"edit web-v1 replicas=0 [Normal ScalingReplicaSet: Scaled down replica set web-v1 from 2 to 0]"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) { wantSteps(t, rollingPlan(t, d, tc.rss...), tc.want...) })
	}
}

// The numbers of pods are those of upstream's own cases where there are any.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, reconcileOldReplicaSets
func TestOldReplicaSetsShrink(t *testing.T) {
	for _, tc := range []struct {
		name               string
		d                  *appsv1.Deployment
		old, oldAvailable  int32
		newer, newAvailabe int32
		want               []string
	}{
		{"all available and complete", web(10, rolling("0", "0%")), 10, 10, 0, 0, []string{"edit web-v1 replicas=9 "}},
		{"two may be missing", web(10, rolling("0", "2")), 10, 10, 0, 0, []string{"edit web-v1 replicas=8 "}},
		{
			"unhealthy ones go first, in one write each", web(10, rolling("0", "2")), 10, 8, 0, 0,
			[]string{"edit web-v1 replicas=8 "},
		},
		{"only unhealthy ones", web(10, rolling("0", "2")), 10, 0, 0, 0, []string{"edit web-v1 replicas=8 "}},
		{"new ones took their place", web(10, rolling("0", "2")), 8, 8, 2, 2, []string{"edit web-v1 replicas=6 "}},
		{"new ones that are not available count for nothing", web(10, rolling("0", "2")), 8, 8, 2, 0, nil},
		{"a stuck rollout stays where it is", web(10, rolling("3", "2")), 8, 7, 5, 0, nil},
		{
			"unhealthy first, then as many healthy as the new ones replace", web(10, rolling("3", "2")), 8, 7, 5, 2,
			[]string{"edit web-v1 replicas=7 ", "edit web-v1 replicas=6 "},
		},
		{"the new one complete", web(10, rolling("3", "2")), 3, 3, 10, 10, []string{"edit web-v1 replicas=0 "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v1, v2 := set(tc.d, 1, "v1", tc.old, availableOf(tc.oldAvailable)),
				set(tc.d, 2, "v2", tc.newer, availableOf(tc.newAvailabe))
			wantSteps(t, rollingPlan(t, tc.d, v1, v2), tc.want...)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, cleanupUnhealthyReplicas and
// scaleDownOldReplicaSetsForRollingUpdate
func TestOldestShrinkFirst(t *testing.T) {
	d := web(10, rolling("0", "4"))
	v0, v1, v2 := set(d, 0, "v0", 5, availableOf(3)), set(d, 1, "v1", 5, availableOf(4)), set(d, 2, "v2", 0)
	wantSteps(t, rollingPlan(t, d, v1, v0, v2), "edit web-v0 replicas=3 ", "edit web-v1 replicas=4 ",
		"edit web-v0 replicas=2 ")
	// No more than the room there is: 10 - 6 = 4 of the 6 that are not available.
	v0, v1 = set(d, 0, "v0", 5, availableOf(2)), set(d, 1, "v1", 5, availableOf(2))
	wantSteps(t, rollingPlan(t, d, v1, v0, v2), "edit web-v0 replicas=2 ", "edit web-v1 replicas=4 ")
}

// A ReplicaSet that was shrunk a moment ago still reports what it had. Who believes that takes away too much.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, cleanupUnhealthyReplicas: the sync gives up
// with an error that it then forgets
func TestNoShrinkingOnOutdatedCounts(t *testing.T) {
	d := web(10, rolling("0", "4"))
	v2 := set(d, 2, "v2", 0)
	wantSteps(t, rollingPlan(t, d, set(d, 0, "v0", 5, availableOf(7)), set(d, 1, "v1", 5), v2))
	// What was taken from older ones before that is kept.
	wantSteps(t, rollingPlan(t, d, set(d, 0, "v0", 5, availableOf(4)), set(d, 1, "v1", 5, availableOf(7)), v2),
		"edit web-v0 replicas=4 ")
}

// A failure to shrink an old ReplicaSet lets the status be written; other failures do not.
func TestStatusAnyway(t *testing.T) {
	d := web(10, rolling("3", "2"))
	for _, step := range rollingPlan(t, d, set(d, 1, "v1", 8, availableOf(7)), set(d, 2, "v2", 5)).steps {
		if edit, ok := step.(editReplicaSet); ok && !edit.StatusAnyway {
			t.Errorf("%s", step)
		}
	}
	for _, step := range rollingPlan(t, d, set(d, 1, "v1", 8), set(d, 2, "v2", 3)).steps {
		if edit, ok := step.(editReplicaSet); ok && edit.StatusAnyway {
			t.Errorf("%s", step)
		}
	}
}

// The rollout of ten pods with room for three more and two fewer, step by step, every pod at once available.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, rolloutRolling
func TestRolloutStepByStep(t *testing.T) {
	d := web(10, rolling("3", "2"), annotate(replicasets.RevisionAnnotation, "2"))
	v1, v2 := set(d, 1, "v1", 10), set(d, 2, "v2", 3)
	var got [][2]int32
	for range 20 {
		edited := false
		for _, step := range mustPlan(t, d, v1, v2).steps {
			switch s := step.(type) {
			case editReplicaSet:
				edited = true
				if s.ReplicaSet.Name == v1.Name {
					v1 = running(s.result(v1))
				} else {
					v2 = running(s.result(v2))
				}
			case updateStatus:
				d.Status = s.Status
			}
		}
		if !edited {
			break
		}
		got = append(got, [2]int32{replicasets.Size(v1), replicasets.Size(v2)})
	}
	equal(t, "sizes of old and new", got, [][2]int32{{5, 3}, {5, 8}, {0, 8}, {0, 10}})
}

// running makes all pods that rs asks for available.
func running(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	n := replicasets.Size(rs)
	rs.Status = appsv1.ReplicaSetStatus{
		Replicas: n, ReadyReplicas: n, AvailableReplicas: n, ObservedGeneration: rs.Generation,
		TerminatingReplicas: ptr.To[int32](0),
	}
	return rs
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, rolloutRolling
func TestHistoryIsCleanedUpOnceTheStatusSaysComplete(t *testing.T) {
	d := web(3, keeping(0), annotate(replicasets.RevisionAnnotation, "2"))
	v1, v2 := set(d, 1, "v1", 0), set(d, 2, "v2", 3)
	wantSteps(t, mustPlan(t, d, v1, v2)) // the status does not say so yet
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	wantSteps(t, mustPlan(t, d, v1, v2), "delete web-v1")
	d.Generation = 2
	wantSteps(t, mustPlan(t, d, v1, v2))
}
