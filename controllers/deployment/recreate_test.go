package deployment

import (
	"testing"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func recreatePlan(t *testing.T, d *appsv1.Deployment, phases []corev1.PodPhase, rss ...*appsv1.ReplicaSet) Changes {
	t.Helper()
	o := Observed{Deployment: d, ReplicaSets: rss, Now: epoch, Pods: map[types.UID][]*corev1.Pod{}}
	for _, phase := range phases {
		o.Pods[rss[0].UID] = append(o.Pods[rss[0].UID], &corev1.Pod{Status: corev1.PodStatus{Phase: phase}})
	}
	return planOf(t, o)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/recreate.go, rolloutRecreate and
// scaleDownOldReplicaSetsForRecreate
func TestRecreateShrinksAllOldFirst(t *testing.T) {
	d := web(3, recreate)
	wantSteps(t, recreatePlan(t, d, nil, set(d, 1, "v1", 3), set(d, 0, "v0", 1), set(d, 0, "v00", 0)),
		"edit web-v0 replicas=0 [Normal ScalingReplicaSet: Scaled down replica set web-v0 from 1 to 0]",
		"edit web-v1 replicas=0 [Normal ScalingReplicaSet: Scaled down replica set web-v1 from 3 to 0]",
		"status generation=1 replicas=4 updated=0 ")
	// Also when the new one is there, of whatever size.
	d = web(3, recreate, annotate(replicasets.RevisionAnnotation, "2"))
	wantSteps(t, recreatePlan(t, d, nil, set(d, 1, "v1", 3), set(d, 2, "v2", 2)), "edit web-v1 replicas=0 ")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/recreate.go, oldPodsRunning
func TestRecreateWaitsForOldPods(t *testing.T) {
	d := web(3, recreate, noDeadline)
	hash := replicasets.ComputeHash(&d.Spec.Template, nil)
	wait, create := []string(nil), []string{"create web-" + hash + " replicas=3 "}
	for _, tc := range []struct {
		name   string
		old    *appsv1.ReplicaSet
		phases []corev1.PodPhase
		want   []string
	}{
		{"nothing left", set(d, 1, "v1", 0), nil, create},
		{"the old replica set still counts one", set(d, 1, "v1", 0, counting(1)), nil, wait},
		{"a running pod, which may be terminating", set(d, 1, "v1", 0), []corev1.PodPhase{corev1.PodRunning}, wait},
		{"a pending one", set(d, 1, "v1", 0), []corev1.PodPhase{corev1.PodPending}, wait},
		{"one whose node is gone", set(d, 1, "v1", 0), []corev1.PodPhase{corev1.PodUnknown}, wait},
		{"one without a phase", set(d, 1, "v1", 0), []corev1.PodPhase{""}, wait},
		{
			"ended ones do not count", set(d, 1, "v1", 0),
			[]corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded},
			create,
		},
		{
			"one that runs among those that ended", set(d, 1, "v1", 0),
			[]corev1.PodPhase{corev1.PodFailed, corev1.PodRunning},
			wait,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantSteps(t, recreatePlan(t, d, tc.phases, tc.old), tc.want...)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/recreate.go, oldPodsRunning and
// scaleUpNewReplicaSetForRecreate
func TestRecreateGrowsTheNewOneAtOnce(t *testing.T) {
	d := web(3, recreate, annotate(replicasets.RevisionAnnotation, "2"))
	// The new one's own pods are not waited for.
	wantSteps(t, recreatePlan(t, d, []corev1.PodPhase{corev1.PodRunning}, set(d, 2, "v2", 1), set(d, 1, "v1", 0)),
		"edit web-v2 replicas=3 [Normal ScalingReplicaSet: Scaled up replica set web-v2 from 1 to 3]")
	wantSteps(t, recreatePlan(t, d, nil, set(d, 2, "v2", 5), set(d, 1, "v1", 0)), "edit web-v2 replicas=3 ")
	d = settled(t, web(3, recreate, keeping(0)), set(d, 2, "v2", 3))
	wantSteps(t, recreatePlan(t, d, nil, set(d, 2, "v2", 3), set(d, 1, "v1", 0)), "delete web-v1")
}
