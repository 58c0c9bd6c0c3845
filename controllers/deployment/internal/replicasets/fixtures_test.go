package replicasets

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// web is the Deployment web of image v2, with these annotations.
func web(annotations map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations},
		Spec:       appsv1.DeploymentSpec{Template: template("v2")},
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

// set is the ReplicaSet web-<image> of this size, created in minute n.
func set(n int, image string, size int32) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-" + image, UID: types.UID("uid-" + image), Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(time.Duration(n) * time.Minute)),
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(size), Template: template(image)},
	}
	rs.Spec.Template.Labels = WithHash(rs.Spec.Template.Labels, "hash-"+image)
	return rs
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
