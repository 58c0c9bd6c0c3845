package replicaset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, reportSortingDeletionAgeRatioMetric,
// which divides integers, and panics when the youngest pod is younger than a millisecond
func TestDeletionAgeRatios(t *testing.T) {
	ago := func(name string, d time.Duration, options ...podOption) *corev1.Pod {
		return newPod(name, append(options, createdAt(epoch.Add(-d)))...)
	}
	young, old, unready := ago("young", 20*time.Second), ago("old", 50*time.Second),
		ago("unready", time.Second, notReady)
	tests := []struct {
		name            string
		active, victims []*corev1.Pod
		want            []float64
	}{
		{
			"ages as multiples of the youngest, fractions included",
			[]*corev1.Pod{young, old},
			[]*corev1.Pod{young, old},
			[]float64{1, 2.5},
		},
		{
			"pods that are not ready neither count nor are reported",
			[]*corev1.Pod{young, old, unready},
			[]*corev1.Pod{unready, old},
			[]float64{2.5},
		},
		{"no ready pods", []*corev1.Pod{unready}, []*corev1.Pod{unready}, nil},
		{"the youngest was created this instant", []*corev1.Pod{ago("new", 0), old}, []*corev1.Pod{old}, nil},
		{"the youngest is of the future", []*corev1.Pod{ago("future", -time.Second), old}, []*corev1.Pod{old}, nil},
		{
			"ages are not known",
			[]*corev1.Pod{newPod("a", createdAt(time.Time{}))},
			[]*corev1.Pod{newPod("a", createdAt(time.Time{}))},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, deletionAgeRatios(tt.active, tt.victims, epoch)); diff != "" {
				t.Errorf("ratios (-want +got):\n%s", diff)
			}
		})
	}
}
