package mutation

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDifference(t *testing.T) {
	a := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
		},
	}}}}
	for want, change := range map[string]func(*corev1.Pod){
		"":                                func(*corev1.Pod) {},
		"Spec.Containers[0].Name: c -> d": func(p *corev1.Pod) { p.Spec.Containers[0].Name = "d" },
		"Spec.NodeName:  -> n":            func(p *corev1.Pod) { p.Spec.NodeName = "n" },
	} {
		b := a.DeepCopy()
		change(b)
		if got := difference(reflect.ValueOf(a), reflect.ValueOf(b)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b := a.DeepCopy()
	b.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
	if got := difference(reflect.ValueOf(a), reflect.ValueOf(b)); got == "" {
		t.Error("another quantity is not seen")
	}
	b = a.DeepCopy()
	b.CreationTimestamp = metav1.Unix(1, 0)
	if got := difference(reflect.ValueOf(a), reflect.ValueOf(b)); got == "" {
		t.Error("another time is not seen")
	}
}
