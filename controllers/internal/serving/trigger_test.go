package serving

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func readySince(after time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(t0.Add(after)) }
}

// Source: k8s.io/endpointslice v0.37.2 util/trigger_time_tracker_test.go
func TestTriggerTimes(t *testing.T) {
	svc := service()
	recreated := service(func(s *corev1.Service) { s.CreationTimestamp = metav1.NewTime(t0.Add(time.Hour)) })
	noCondition := func(p *corev1.Pod) { p.Status.Conditions = nil }
	tests := []struct {
		name  string
		first []*corev1.Pod
		svc   *corev1.Service
		then  []*corev1.Pod
		want  time.Time
	}{
		{"nothing new", []*corev1.Pod{pod(1)}, svc, []*corev1.Pod{pod(1)}, time.Time{}},
		{
			"a new pod",
			[]*corev1.Pod{pod(1)},
			svc,
			[]*corev1.Pod{pod(1), pod(2, readySince(9*time.Minute))},
			t0.Add(9 * time.Minute),
		},
		{
			"two new pods: the earlier", nil, svc,
			[]*corev1.Pod{pod(1, readySince(9*time.Minute)), pod(2, readySince(8*time.Minute))},
			t0.Add(8 * time.Minute),
		},
		{
			"a pod's readiness changed",
			[]*corev1.Pod{pod(1)},
			svc,
			[]*corev1.Pod{pod(1, unready, readySince(5*time.Minute))},
			t0.Add(5 * time.Minute),
		},
		{
			"a pod's time went back",
			[]*corev1.Pod{pod(5)},
			svc,
			[]*corev1.Pod{pod(5, readySince(time.Second))},
			time.Time{},
		},
		{"a pod went", []*corev1.Pod{pod(1), pod(2)}, svc, []*corev1.Pod{pod(1)}, time.Time{}},
		{"a pod without condition", nil, svc, []*corev1.Pod{pod(1, noCondition)}, time.Time{}},
		{"another Service of the name", []*corev1.Pod{pod(1)}, recreated, []*corev1.Pod{pod(1)}, t0.Add(time.Hour)},
		{"another Service of the name, and an earlier pod", nil, recreated, []*corev1.Pod{pod(1)}, t0.Add(time.Minute)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			times := NewTriggerTimes()
			if got := times.Advance(svc, tt.first); !got.Equal(t0) {
				t.Errorf("first: %v, want the Service's creation", got)
			}
			if got := times.Advance(tt.svc, tt.then); !got.Equal(tt.want) {
				t.Errorf("then: %v, want %v", got, tt.want)
			}
			times.Forget(types.NamespacedName{Namespace: "ns", Name: "web"})
			if got := times.Advance(tt.svc, tt.then); !got.Equal(tt.svc.CreationTimestamp.Time) ||
				len(times.seen) != 1 {
				t.Errorf("after forget: %v", got)
			}
		})
	}
}
