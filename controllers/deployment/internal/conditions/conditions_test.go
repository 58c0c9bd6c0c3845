package conditions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetDeploymentCondition
func TestSetAndRemove(t *testing.T) {
	epoch := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old, now := metav1.NewTime(epoch.Add(-time.Hour)), metav1.NewTime(epoch)
	equal := func(t *testing.T, what string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	was := appsv1.DeploymentCondition{
		Type: "A", Status: "True", Reason: "R", Message: "old", LastUpdateTime: old,
		LastTransitionTime: old,
	}
	other := appsv1.DeploymentCondition{Type: "B", Status: "True"}
	for _, tc := range []struct {
		name string
		set  appsv1.DeploymentCondition
		want []appsv1.DeploymentCondition
	}{
		{
			"same status and reason: nothing, not even the message", New("A", "True", "R", "new", epoch),
			[]appsv1.DeploymentCondition{was, other},
		},
		{
			"same status: moved to the end, transition time kept", New("A", "True", "S", "new", epoch),
			[]appsv1.DeploymentCondition{
				other,
				{Type: "A", Status: "True", Reason: "S", Message: "new", LastUpdateTime: now, LastTransitionTime: old},
			},
		},
		{
			"another status", New("A", "False", "R", "new", epoch),
			[]appsv1.DeploymentCondition{
				other,
				{
					Type: "A", Status: "False", Reason: "R", Message: "new", LastUpdateTime: now,
					LastTransitionTime: now,
				},
			},
		},
		{
			"a new type", New("C", "True", "R", "new", epoch),
			[]appsv1.DeploymentCondition{
				was, other,
				{Type: "C", Status: "True", Reason: "R", Message: "new", LastUpdateTime: now, LastTransitionTime: now},
			},
		},
	} {
		s := appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{was, other}}
		before := s.Conditions
		Set(&s, tc.set)
		equal(t, tc.name, s.Conditions, tc.want)
		equal(t, tc.name+": the slice before", before, []appsv1.DeploymentCondition{was, other})
	}
	s := appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{was}}
	Remove(&s, "A")
	if s.Conditions != nil {
		t.Errorf("left: %v", s.Conditions)
	}
}
