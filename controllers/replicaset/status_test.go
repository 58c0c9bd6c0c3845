package replicaset

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_utils.go, calculateStatus
func TestPlanStatusCounts(t *testing.T) {
	fancy := func(s *appsv1.ReplicaSet) {
		s.Spec.Template.Labels = map[string]string{"app": "web", "tier": "front"}
	}
	sinceSeconds := func(n int) podOption { return readySince(epoch.Add(-time.Duration(n) * time.Second)) }
	tests := []struct {
		name                string
		set                 *appsv1.ReplicaSet
		active, terminating []*corev1.Pod
		want                appsv1.ReplicaSetStatus
	}{
		{"nothing", newSet(0), nil, nil, appsv1.ReplicaSetStatus{}},
		{"all ready", newSet(3), numbered(3), nil, appsv1.ReplicaSetStatus{
			Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
		}},
		{"some ready", newSet(3), append(numbered(2, notReady), newPod("r")), nil, appsv1.ReplicaSetStatus{
			Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 1, AvailableReplicas: 1,
		}},
		{"more than asked for", newSet(1), numbered(2), nil, appsv1.ReplicaSetStatus{
			Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		}},
		{
			"fully labelled are those with all of the template's labels", newSet(2, fancy),
			[]*corev1.Pod{newPod("a"), newPod("b", labelled("app", "web", "tier", "front", "more", "x"))},
			nil,
			appsv1.ReplicaSetStatus{Replicas: 2, FullyLabeledReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 2},
		},
		{
			"available are those ready for long enough, the last moment included", newSet(4, minReady(60)),
			[]*corev1.Pod{
				newPod("a", sinceSeconds(59)), newPod("b", sinceSeconds(60)), newPod("c", sinceSeconds(61)),
				newPod("d", notReady),
			},
			nil,
			appsv1.ReplicaSetStatus{Replicas: 4, FullyLabeledReplicas: 4, ReadyReplicas: 3, AvailableReplicas: 2},
		},
		{"terminating ones are counted apart", newSet(1), numbered(1), numbered(2, deleting), appsv1.ReplicaSetStatus{
			Replicas: 1, FullyLabeledReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			TerminatingReplicas: ptr.To[int32](2),
		}},
		{"counts that were there before do not stay", newSet(0, withStatus(appsv1.ReplicaSetStatus{
			Replicas: 9, FullyLabeledReplicas: 9, ReadyReplicas: 9, AvailableReplicas: 9,
			TerminatingReplicas: ptr.To[int32](9), ObservedGeneration: 9,
		})), nil, nil, appsv1.ReplicaSetStatus{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.set.Generation = 7
			tt.want.ObservedGeneration = 7
			if tt.want.TerminatingReplicas == nil {
				tt.want.TerminatingReplicas = ptr.To[int32](0) // zero is reported, not omitted
			}
			got := planStatus(observed{set: tt.set, active: tt.active, terminating: tt.terminating}, nil, epoch)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_utils.go, calculateStatus, SetCondition and
// RemoveCondition
func TestPlanStatusConditions(t *testing.T) {
	other := appsv1.ReplicaSetCondition{Type: "Other", Status: corev1.ConditionTrue, Reason: "R"}
	earlier := metav1.Time{Time: epoch.Add(-time.Hour)}
	failure := func(at metav1.Time, reason, message string) appsv1.ReplicaSetCondition {
		return appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, LastTransitionTime: at,
			Reason: reason, Message: message,
		}
	}
	now := metav1.Time{Time: epoch}
	type conditions = []appsv1.ReplicaSetCondition
	tests := []struct {
		name     string
		before   conditions
		replicas int32
		active   int
		err      error
		want     conditions
	}{
		{"no failure", conditions{other}, 1, 1, nil, conditions{other}},
		{
			"failed to create",
			conditions{other},
			2, 1, errors.New("quota"),
			conditions{other, failure(now, "FailedCreate", "quota")},
		},
		{"failed to delete", nil, 1, 2, errors.New("forbidden"), conditions{failure(now, "FailedDelete", "forbidden")}},
		{
			"a failure on record stays as it was",
			conditions{failure(earlier, "FailedCreate", "old"), other},
			1, 2, errors.New("new"),
			conditions{failure(earlier, "FailedCreate", "old"), other},
		},
		{
			"success removes it",
			conditions{failure(earlier, "FailedCreate", "old"), other},
			1, 1, nil,
			conditions{other},
		},
		{"success removes the only one", conditions{failure(earlier, "FailedCreate", "old")}, 1, 1, nil, conditions{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(tt.replicas, withStatus(appsv1.ReplicaSetStatus{Conditions: tt.before}))
			before := set.DeepCopy()
			status := planStatus(observed{set: set, active: numbered(tt.active)}, tt.err, epoch)
			if diff := cmp.Diff(tt.want, status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, set); diff != "" {
				t.Errorf("the observed set was changed:\n%s", diff)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_utils.go, updateReplicaSetStatus
func TestSameStatus(t *testing.T) {
	base := appsv1.ReplicaSetStatus{
		Replicas: 1, FullyLabeledReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		TerminatingReplicas: ptr.To[int32](0), ObservedGeneration: 1,
		Conditions: []appsv1.ReplicaSetCondition{{Type: "A"}},
	}
	if !sameStatus(base, *base.DeepCopy()) {
		t.Error("a copy differs")
	}
	changes := map[string]func(*appsv1.ReplicaSetStatus){
		"replicas":     func(s *appsv1.ReplicaSetStatus) { s.Replicas++ },
		"labelled":     func(s *appsv1.ReplicaSetStatus) { s.FullyLabeledReplicas++ },
		"ready":        func(s *appsv1.ReplicaSetStatus) { s.ReadyReplicas++ },
		"available":    func(s *appsv1.ReplicaSetStatus) { s.AvailableReplicas++ },
		"terminating":  func(s *appsv1.ReplicaSetStatus) { s.TerminatingReplicas = ptr.To[int32](1) },
		"unreported":   func(s *appsv1.ReplicaSetStatus) { s.TerminatingReplicas = nil },
		"generation":   func(s *appsv1.ReplicaSetStatus) { s.ObservedGeneration++ },
		"conditions":   func(s *appsv1.ReplicaSetStatus) { s.Conditions[0].Message = "m" },
		"no condition": func(s *appsv1.ReplicaSetStatus) { s.Conditions = nil },
	}
	for name, change := range changes {
		changed := base.DeepCopy()
		change(changed)
		if sameStatus(base, *changed) {
			t.Errorf("%s: no difference seen", name)
		}
	}
	if !sameStatus(appsv1.ReplicaSetStatus{Conditions: []appsv1.ReplicaSetCondition{}}, appsv1.ReplicaSetStatus{}) {
		t.Error("an empty list of conditions differs from none")
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, FindMinNextPodAvailabilityCheck, and
// pkg/controller/replicaset/replica_set.go, syncReplicaSet
func TestNextCheck(t *testing.T) {
	ready := func(n int32) setOption {
		return withStatus(appsv1.ReplicaSetStatus{ReadyReplicas: n, AvailableReplicas: 1})
	}
	ago := func(name string, d time.Duration) *corev1.Pod { return newPod(name, readySince(epoch.Add(-d))) }
	tests := []struct {
		name   string
		set    *appsv1.ReplicaSet
		active []*corev1.Pod
		want   time.Duration // from now; 0: no check
	}{
		{"no minReadySeconds", newSet(2, ready(2)), []*corev1.Pod{ago("a", 0)}, 0},
		{"all that are ready are available", newSet(1, minReady(10), ready(1)), []*corev1.Pod{ago("a", 0)}, 0},
		{
			"the earliest decides", newSet(3, minReady(10), ready(3)),
			[]*corev1.Pod{ago("a", 2*time.Second), ago("b", 7*time.Second), ago("c", 5*time.Second)},
			3 * time.Second,
		},
		{
			"available and unready pods do not count", newSet(3, minReady(10), ready(2)),
			[]*corev1.Pod{ago("a", time.Minute), newPod("b", notReady), ago("c", 4*time.Second)},
			6 * time.Second,
		},
		{
			"at the last moment it is available", newSet(2, minReady(10), ready(2)),
			[]*corev1.Pod{ago("a", 10*time.Second), ago("b", time.Second)},
			9 * time.Second,
		},
		{
			"no pod says when: a whole period", newSet(2, minReady(10), ready(2)),
			[]*corev1.Pod{newPod("a", readySince(time.Time{}))},
			10 * time.Second,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := nextCheck(tt.set, tt.active, epoch)
			want := epoch.Add(tt.want)
			if tt.want == 0 {
				want = time.Time{}
			}
			if !got.Equal(want) {
				t.Errorf("next check at %v, want %v", got, want)
			}
		})
	}
}
