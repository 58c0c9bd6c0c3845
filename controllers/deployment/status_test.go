package deployment

import (
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func plannerFor(t *testing.T, d *appsv1.Deployment, rss ...*appsv1.ReplicaSet) *planner {
	t.Helper()
	p, err := newPlanner(Observed{Deployment: d, ReplicaSets: rss, Now: epoch})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, calculateStatus
func TestStatusCounts(t *testing.T) {
	d := web(10, func(d *appsv1.Deployment) { d.Generation, d.Status.CollisionCount = 7, ptr.To[int32](2) })
	v1 := set(d, 1, "v1", 6, func(rs *appsv1.ReplicaSet) {
		rs.Status = appsv1.ReplicaSetStatus{
			Replicas: 7, ReadyReplicas: 5, AvailableReplicas: 4, ObservedGeneration: 1,
			TerminatingReplicas: ptr.To[int32](1),
		}
	})
	v2 := set(d, 2, "v2", 4, func(rs *appsv1.ReplicaSet) {
		rs.Status = appsv1.ReplicaSetStatus{
			Replicas: 3, ReadyReplicas: 2, AvailableReplicas: 1, ObservedGeneration: 1,
			TerminatingReplicas: ptr.To[int32](2),
		}
	})
	got := plannerFor(t, d, v1, v2).status()
	got.Conditions = nil
	equal(t, "status", got, appsv1.DeploymentStatus{
		ObservedGeneration: 7, Replicas: 10, UpdatedReplicas: 3, ReadyReplicas: 7, AvailableReplicas: 5,
		UnavailableReplicas: 5,
		TerminatingReplicas: ptr.To[int32](3), CollisionCount: ptr.To[int32](2),
	})
	equal(t, "updated without a new one", plannerFor(t, d, v1).status().UpdatedReplicas, 0)
	equal(t, "more available than asked for",
		plannerFor(t, d, set(d, 1, "v1", 1, availableOf(5))).status().UnavailableReplicas, 0)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go,
// GetTerminatingReplicaCountForReplicaSets
func TestTerminating(t *testing.T) {
	d := web(1)
	silent := func(rs *appsv1.ReplicaSet) { rs.Status.TerminatingReplicas = nil }
	unseen := func(rs *appsv1.ReplicaSet) { rs.Status = appsv1.ReplicaSetStatus{} }
	all := func(rss ...*appsv1.ReplicaSet) *int32 { return rollout.Terminating(rss) }
	equal(t, "none", all(), ptr.To[int32](0))
	equal(t, "all report it", all(set(d, 1, "a", 1), set(d, 2, "b", 1)), ptr.To[int32](0))
	equal(t, "one does not", all(set(d, 1, "a", 1), set(d, 2, "b", 1, silent)), nil)
	equal(t, "one was not seen by its controller yet", all(set(d, 1, "a", 1, unseen)), ptr.To[int32](0))
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, calculateStatus
func TestAvailable(t *testing.T) {
	for _, tc := range []struct {
		name      string
		d         *appsv1.Deployment
		available int32
		want      corev1.ConditionStatus
	}{
		{"all", web(10), 10, corev1.ConditionTrue},
		{"as many as have to be", web(10), 8, corev1.ConditionTrue},
		{"one fewer", web(10), 7, corev1.ConditionFalse},
		{"recreate needs all", web(10, recreate), 9, corev1.ConditionFalse},
		{"none of none", web(0), 0, corev1.ConditionTrue},
		{"all may be missing", web(3, rolling("0", "100%")), 0, corev1.ConditionTrue},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := plannerFor(t, tc.d, set(tc.d, 1, "v2", *tc.d.Spec.Replicas, availableOf(tc.available))).status()
			want := appsv1.DeploymentCondition{
				Type: appsv1.DeploymentAvailable, Status: tc.want, Reason: "MinimumReplicasAvailable",
				Message:        "Deployment has minimum availability.",
				LastUpdateTime: metav1.NewTime(epoch), LastTransitionTime: metav1.NewTime(epoch),
			}
			if tc.want == corev1.ConditionFalse {
				want.Reason, want.Message = "MinimumReplicasUnavailable",
					"Deployment does not have minimum availability."
			}
			equal(t, "conditions", s.Conditions, []appsv1.DeploymentCondition{want})
		})
	}
}
