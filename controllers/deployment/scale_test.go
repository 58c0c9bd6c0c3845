package deployment

import (
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, isScalingEvent
func TestSizeChanged(t *testing.T) {
	d := web(4)
	for _, tc := range []struct {
		name string
		rss  []*appsv1.ReplicaSet
		want bool
	}{
		{"none", nil, false},
		{"as it was", []*appsv1.ReplicaSet{set(d, 1, "v1", 4), set(d, 2, "v2", 1)}, false},
		{
			"another size then, old",
			[]*appsv1.ReplicaSet{set(d, 1, "v1", 4, scaledFor("3", "4")), set(d, 2, "v2", 1)},
			true,
		},
		{
			"another size then, new",
			[]*appsv1.ReplicaSet{set(d, 1, "v1", 4), set(d, 2, "v2", 1, scaledFor("5", "4"))},
			true,
		},
		{"one without pods does not count", []*appsv1.ReplicaSet{set(d, 1, "v1", 0, scaledFor("3", "4"))}, false},
		{"nor one that does not say", []*appsv1.ReplicaSet{set(d, 1, "v1", 4, scaledFor("many", "4"))}, false},
		{"nor one that says nonsense", []*appsv1.ReplicaSet{set(d, 1, "v1", 4, scaledFor("-1", "4"))}, false},
	} {
		p, err := newPlanner(Observed{Deployment: d, ReplicaSets: tc.rss, Now: epoch})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.sizeChanged(); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, FindActiveOrLatest
func TestActiveOrLatest(t *testing.T) {
	d := web(4)
	for _, tc := range []struct {
		name string
		rss  []*appsv1.ReplicaSet
		want string
	}{
		{"none", nil, ""},
		{"one active, old", []*appsv1.ReplicaSet{set(d, 1, "v1", 3), set(d, 2, "v2", 0)}, "web-v1"},
		{"one active, new", []*appsv1.ReplicaSet{set(d, 1, "v1", 0), set(d, 2, "v2", 3)}, "web-v2"},
		{"two active", []*appsv1.ReplicaSet{set(d, 1, "v1", 1), set(d, 2, "v2", 3)}, ""},
		{"none active: the new one", []*appsv1.ReplicaSet{set(d, 3, "v3", 0), set(d, 2, "v2", 0)}, "web-v2"},
		{"none active nor new: the latest", []*appsv1.ReplicaSet{set(d, 3, "v3", 0), set(d, 1, "v1", 0)}, "web-v3"},
	} {
		p, err := newPlanner(Observed{Deployment: d, ReplicaSets: tc.rss, Now: epoch})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if rs := p.activeOrLatest(); rs != nil {
			got = rs.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// scaled are the sizes afterwards of ReplicaSets v0, v1 and v2 (new) of those sizes before, in a Deployment whose size
// changed from one to another. A size of -1 is no ReplicaSet.
func scaled(t *testing.T, from, to *appsv1.Deployment, sizes [3]int32, changes ...setChange) [3]int32 {
	t.Helper()
	var rss []*appsv1.ReplicaSet
	for i, name := range []string{"v0", "v1", "v2"} {
		if sizes[i] >= 0 {
			rss = append(rss, set(from, int64(i), name, sizes[i], changes...))
		}
	}
	for _, s := range mustPlan(t, to, rss...).steps {
		if edit, ok := s.(editReplicaSet); ok && edit.Replicas != nil {
			sizes[map[string]int{"web-v0": 0, "web-v1": 1, "web-v2": 2}[edit.ReplicaSet.Name]] = *edit.Replicas
		}
	}
	return sizes
}

// The cases are upstream's (TestScale, and its e2e), by their meaning.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scale
func TestScale(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to *appsv1.Deployment
		sizes    [3]int32
		want     [3]int32
	}{
		{"up, one replica set", web(10), web(12), [3]int32{-1, -1, 10}, [3]int32{-1, -1, 12}},
		{"down, one replica set", web(10), web(5), [3]int32{-1, -1, 10}, [3]int32{-1, -1, 5}},
		{"to nothing", web(10), web(0), [3]int32{-1, -1, 10}, [3]int32{-1, -1, 0}},
		{
			"up in a rollout", web(10, rolling("0", "1")), web(12, rolling("0", "1")),
			[3]int32{-1, 5, 5},
			[3]int32{-1, 6, 6},
		},
		{
			"down in a rollout", web(10, rolling("0", "1")), web(5, rolling("0", "1")),
			[3]int32{-1, 5, 5},
			[3]int32{-1, 2, 3},
		},
		{
			"proportionally", web(100, rolling("0", "1")), web(200, rolling("0", "1")),
			[3]int32{25, 25, 50},
			[3]int32{50, 50, 100},
		},
		{
			"proportionally, down", web(200, rolling("0", "1")), web(100, rolling("0", "1")),
			[3]int32{50, 50, 100},
			[3]int32{25, 25, 50},
		},
		{
			"rounding goes to the largest", web(9, rolling("0", "1")), web(5, rolling("0", "1")),
			[3]int32{3, 3, 3},
			[3]int32{1, 2, 2},
		},
		{
			"and up to the newest of the largest", web(6, rolling("0", "1")), web(7, rolling("0", "1")),
			[3]int32{2, 2, 2},
			[3]int32{2, 2, 3},
		},
		{
			"with a surge", web(20, rolling("2", "1")), web(22, rolling("2", "1")),
			[3]int32{5, 7, 10},
			[3]int32{5, 8, 11},
		},
		{"everything to nothing", web(6), web(0), [3]int32{3, 2, 1}, [3]int32{0, 0, 0}},
		{
			"the one of the run", web(10, rolling("3", "2")), web(30, rolling("3", "2")),
			[3]int32{-1, 8, 5},
			[3]int32{-1, 20, 13},
		},
		{"none is created", web(10, paused), web(20, paused), [3]int32{-1, -1, -1}, [3]int32{-1, -1, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			equal(t, "sizes", scaled(t, tc.from, tc.to, tc.sizes), tc.want)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, getReplicaSetFraction
func TestScaleWithoutTheAnnotation(t *testing.T) {
	from, to := web(10, rolling("0", "1")),
		web(20, rolling("0", "1"), func(d *appsv1.Deployment) { d.Status.Replicas = 10 })
	for _, value := range []string{"0", "x", "-3"} {
		equal(t, value, scaled(t, from, to, [3]int32{-1, 5, 5}, annotateSet(replicasets.MaxReplicasAnnotation, value)),
			[3]int32{-1, 10, 10})
	}
	// Nor any pods: all that is to be added goes to the largest, of which the newest.
	to.Status.Replicas = 0
	equal(t, "neither", scaled(t, from, to, [3]int32{-1, 5, 5}, annotateSet(replicasets.MaxReplicasAnnotation, "0")),
		[3]int32{-1, 5, 15})
}

// Differs: kube-controller-manager computes with 32 bits and would give the larger one a negative share.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, getReplicaSetFraction
func TestScaleOfHugeSizes(t *testing.T) {
	from, to := web(100_000, rolling("0", "1")), web(120_000, rolling("0", "1"))
	equal(t, "sizes", scaled(t, from, to, [3]int32{-1, 50_000, 50_000}), [3]int32{-1, 60_000, 60_000})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scale; util/deployment_util.go, IsSaturated
func TestSaturatedRemovesTheOthers(t *testing.T) {
	d := web(5, annotate(replicasets.RevisionAnnotation, "2"))
	// Two old ones were adopted, the newest is shrunk first. One of them makes it a scaling event.
	wantSteps(t, mustPlan(t, d, set(d, 0, "v0", 1, scaledFor("9", "9")), set(d, 1, "v1", 2), set(d, 2, "v2", 5)),
		"edit web-v1 replicas=0 ", "edit web-v0 replicas=0 desired-replicas=5 max-replicas=7 ")
	for name, notYet := range map[string]setChange{
		"one pod is missing":       availableOf(4),
		"scaled for another size":  scaledFor("4", "7"),
		"scaled for nobody knows":  scaledFor("", "7"),
		"has not got the size yet": func(rs *appsv1.ReplicaSet) { *rs.Spec.Replicas = 4 },
	} {
		p, err := newPlanner(
			Observed{Deployment: d, ReplicaSets: []*appsv1.ReplicaSet{set(d, 2, "v2", 5, notYet)}, Now: epoch},
		)
		if err != nil {
			t.Fatal(err)
		}
		if p.saturated() {
			t.Errorf("%s: saturated", name)
		}
	}
}

// Proportional scaling notes the size it was for on every active ReplicaSet, also on those whose size stays.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scale and scaleReplicaSet
func TestScaleRefreshesAnnotations(t *testing.T) {
	d := web(10, rolling("0", "1"), annotate(replicasets.RevisionAnnotation, "2"))
	wantSteps(t,
		mustPlan(t, d, set(d, 0, "v0", 3, scaledFor("9", "9")), set(d, 1, "v1", 3, scaledFor("9", "9")),
			set(d, 2, "v2", 4, availableOf(0))),
		"edit web-v1 desired-replicas=10 max-replicas=10", "edit web-v0 desired-replicas=10 max-replicas=10")
}

// Kept as they are in kube-controller-manager: a Deployment in these states does not go on until its size changes.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scale
func TestScalingThatIsNeverDone(t *testing.T) {
	t.Run("somebody gave the only one its size", func(t *testing.T) {
		d := web(5)
		wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 5, scaledFor("9", "9"))))
	})
	t.Run("two are active, and the strategy is Recreate", func(t *testing.T) {
		d := web(5, recreate, annotate(replicasets.RevisionAnnotation, "2"))
		wantSteps(t, mustPlan(t, d, set(d, 1, "v1", 2, scaledFor("9", "9")), set(d, 2, "v2", 2)))
	})
}
