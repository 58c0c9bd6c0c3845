package replicaset

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, GetPodFromTemplate
func TestPodFor(t *testing.T) {
	set := newSet(1, func(s *appsv1.ReplicaSet) {
		s.Spec.Template.ObjectMeta = metav1.ObjectMeta{
			Name: "not-taken", Namespace: "not-taken", GenerateName: "not-taken", UID: "not-taken",
			Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"},
			Finalizers:      []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "not-taken"}},
		}
	})
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"},
			Finalizers: []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web-uid",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	got, err := podFor(set)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}

	before := set.DeepCopy()
	got.Labels["x"], got.Annotations["x"], got.Finalizers[0], got.Spec.Containers[0].Image = "x", "x", "x", "x"
	if diff := cmp.Diff(before, set); diff != "" {
		t.Errorf("the pod shares memory with its template:\n%s", diff)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, createPods
func TestPodForNeedsLabels(t *testing.T) {
	set := newSet(1, func(s *appsv1.ReplicaSet) { s.Spec.Template.Labels = nil })
	if _, err := podFor(set); !errors.Is(err, errNoLabels) || err.Error() != "unable to create pods, no labels" {
		t.Errorf("error = %v", err)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, getPodsPrefix
func TestNamePrefix(t *testing.T) {
	longest, tooLong := strings.Repeat("a", 253), strings.Repeat("a", 254)
	tests := map[string]string{
		"web":    "web-",
		"web.v1": "web.v1-",
		"a":      "a-",
		longest:  longest + "-", // the server cuts a prefix so that the name fits
		tooLong:  tooLong,
		"Web":    "Web", // no name of a pod, with or without a dash
	}
	for name, want := range tests {
		if got := namePrefix(name); got != want {
			t.Errorf("namePrefix(%q) = %q, want %q", name, got, want)
		}
	}
}
