package replicasets

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func names(rss []*appsv1.ReplicaSet) []string {
	var names []string
	for _, rs := range rss {
		names = append(names, rs.Name)
	}
	return names
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, FindNewReplicaSet and
// FindOldReplicaSets
func TestSplit(t *testing.T) {
	d := web(nil)
	v1, v2, v3 := set(1, "v1", 1), set(2, "v2", 0), set(3, "v3", 1)
	twin := set(4, "v2", 1)
	twin.Name, twin.UID = "web-twin", "uid-twin"
	sameAge := set(3, "v4", 1)
	for _, tc := range []struct {
		name    string
		rss     []*appsv1.ReplicaSet
		wantNew string
		wantOld []string
	}{
		{"none", nil, "", nil},
		{"new alone", []*appsv1.ReplicaSet{v2}, "web-v2", nil},
		{"old only", []*appsv1.ReplicaSet{v3, v1}, "", []string{"web-v1", "web-v3"}},
		{"old ones by age", []*appsv1.ReplicaSet{v3, v2, v1}, "web-v2", []string{"web-v1", "web-v3"}},
		{
			"of two with the template the older",
			[]*appsv1.ReplicaSet{twin, v2, v1},
			"web-v2",
			[]string{"web-v1", "web-twin"},
		},
		{"of one age by name", []*appsv1.ReplicaSet{sameAge, v3}, "", []string{"web-v3", "web-v4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			order := slices.Clone(tc.rss)
			newRS, oldRSs := Split(d, tc.rss)
			name := ""
			if newRS != nil {
				name = newRS.Name
			}
			equal(t, "new", name, tc.wantNew)
			equal(t, "old", names(oldRSs), tc.wantOld)
			equal(t, "the caller's order", names(tc.rss), names(order))
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, EqualIgnoreHash
func TestSameTemplate(t *testing.T) {
	plain, hashed, other := template("v1"), template("v1"), template("v1")
	hashed.Labels = WithHash(hashed.Labels, "a")
	other.Labels = WithHash(other.Labels, "b")
	if !SameTemplate(&plain, &hashed) || !SameTemplate(&hashed, &plain) || !SameTemplate(&hashed, &other) {
		t.Error("the hash label tells templates apart")
	}
	equal(t, "labels are left alone", hashed.Labels["pod-template-hash"], "a")
	empty := template("v1")
	empty.Spec.Volumes = []corev1.Volume{}
	if !SameTemplate(&plain, &empty) {
		t.Error("an empty list is not nothing")
	}
	label := template("v1")
	label.Labels = map[string]string{"app": "web", "more": "x"}
	image := template("v2")
	if SameTemplate(&plain, &label) || SameTemplate(&plain, &image) {
		t.Error("different templates are the same")
	}
}

func TestOrders(t *testing.T) {
	rss := []*appsv1.ReplicaSet{set(1, "v1", 2), set(2, "v2", 5), set(3, "v3", 2), set(4, "v4", 0)}
	slices.SortFunc(rss, BySizeThenNewer)
	equal(t, "growing", names(rss), []string{"web-v2", "web-v3", "web-v1", "web-v4"})
	slices.SortFunc(rss, BySizeThenOlder)
	equal(t, "shrinking", names(rss), []string{"web-v2", "web-v1", "web-v3", "web-v4"})
	equal(t, "active", names(Active(rss)), []string{"web-v2", "web-v1", "web-v3"})
	equal(t, "total", TotalSize(rss), 9)
	rss[0].Spec.Replicas = nil
	equal(t, "no size is one", TotalSize(rss), 5)
	equal(t, "pointer", Size(&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0)}}), 0)
}
