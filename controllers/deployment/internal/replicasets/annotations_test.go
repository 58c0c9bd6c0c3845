package replicasets

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetNewReplicaSetAnnotations
func TestAnnotationsForNew(t *testing.T) {
	own := web(map[string]string{
		"cause": "new", corev1.LastAppliedConfigAnnotation: "x", appsv1.DeprecatedRollbackTo: "1",
		RevisionAnnotation: "9", RevisionHistoryAnnotation: "1,2", DesiredReplicasAnnotation: "3",
		MaxReplicasAnnotation: "4",
	})
	for _, tc := range []struct {
		name        string
		d           *appsv1.Deployment
		current     map[string]string
		newest      int64
		want        map[string]string
		wantChanged bool
	}{
		{
			"created: the user's annotations and a revision", own, nil, 1,
			map[string]string{"cause": "new", RevisionAnnotation: "1"},
			true,
		},
		{
			"up to date", own,
			map[string]string{"cause": "new", RevisionAnnotation: "5"},
			5,
			map[string]string{"cause": "new", RevisionAnnotation: "5"},
			false,
		},
		{
			"a changed annotation is copied", own,
			map[string]string{"cause": "old", RevisionAnnotation: "5"},
			5,
			map[string]string{"cause": "new", RevisionAnnotation: "5"},
			true,
		},
		{
			"one that the deployment lost stays", web(nil),
			map[string]string{"cause": "old", RevisionAnnotation: "5"},
			5,
			map[string]string{"cause": "old", RevisionAnnotation: "5"},
			false,
		},
		{
			"the revision never falls", web(nil),
			map[string]string{RevisionAnnotation: "5"},
			2,
			map[string]string{RevisionAnnotation: "5"},
			false,
		},
		{
			"rolled back to: it rises, and the old one is kept", web(nil),
			map[string]string{RevisionAnnotation: "1"},
			3,
			map[string]string{RevisionAnnotation: "3", RevisionHistoryAnnotation: "1"},
			true,
		},
		{
			"and again", web(nil),
			map[string]string{RevisionAnnotation: "3", RevisionHistoryAnnotation: "1"},
			5,
			map[string]string{RevisionAnnotation: "5", RevisionHistoryAnnotation: "1,3"},
			true,
		},
		{
			"adopted without a revision", web(nil),
			map[string]string{"a": "b"},
			2,
			map[string]string{"a": "b", RevisionAnnotation: "2"},
			true,
		},
		// Differs: see AnnotationsForNew.
		{
			"a revision that somebody wrote stays, and nothing is copied", own,
			map[string]string{RevisionAnnotation: "x"},
			2,
			map[string]string{"cause": "new", RevisionAnnotation: "x"},
			false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changed := AnnotationsForNew(tc.d, tc.current, tc.newest)
			equal(t, "annotations", got, tc.want)
			equal(t, "changed", changed, tc.wantChanged)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetNewReplicaSetAnnotations
func TestHistoryIsCutFromItsOldEnd(t *testing.T) {
	equal(t, "first", appendHistory("", "1"), "1")
	equal(t, "one that begins with a comma is void", appendHistory(",3", "4"), "4")
	full := "1," + strings.Repeat("2,", 998) + "33" // 2 + 1996 + 2 = 2000
	equal(t, "length", len(full), maxHistoryLength)
	got := appendHistory(full, "4444")
	equal(t, "the oldest are dropped", got, strings.Repeat("2,", 996)+"33,4444")
	equal(t, "as few as possible", len(got), 1999)
	equal(t, "all of them if need be", appendHistory(strings.Repeat("9", 1999), "12"), "12")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go,
// getNonNegativeInt32FromAnnotation
func TestCount(t *testing.T) {
	count := func(value string) (int32, bool) {
		rs := set(1, "v1", 1)
		rs.Annotations["n"] = value
		return Count(rs, "n")
	}
	for value, want := range map[string]int32{"0": 0, "7": 7, "2147483647": 2147483647} {
		if n, ok := count(value); n != want || !ok {
			t.Errorf("%q = %d, %t", value, n, ok)
		}
	}
	for _, value := range []string{"", "-1", "x", "1.5", "2147483648", "4294967296"} {
		if n, ok := count(value); n != 0 || ok {
			t.Errorf("%q = %d, %t", value, n, ok)
		}
	}
	if _, ok := Count(set(1, "v1", 1), "n"); ok {
		t.Error("a missing annotation counts")
	}
}
