package serving

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// t0 is when every Service of these tests was created.
var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func service(change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", CreationTimestamp: metav1.NewTime(t0)},
	}
	for _, f := range change {
		f(svc)
	}
	return svc
}

// pod returns the i-th pod: ready since i minutes after t0.
func pod(i int, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("web-%d", i)},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{
				Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(t0.Add(time.Duration(i) * time.Minute)),
			},
		}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
