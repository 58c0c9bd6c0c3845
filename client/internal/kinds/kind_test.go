package kinds

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestKindOf: the kind of a list is that of its items, but an object may have a kind like AllowList. A Go type that is
// registered for several kinds has the one that the object names.
func TestKindOf(t *testing.T) {
	old := schema.GroupVersionKind{Group: "old.example.com", Version: "v1", Kind: "ConfigMap"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(old, &corev1.ConfigMap{})
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{})
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("PodList"), &corev1.PodList{})
	scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Pod"), &corev1.Pod{})
	named := func(obj runtime.Object, apiVersion, kind string) runtime.Object {
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
		return obj
	}
	for _, c := range []struct {
		obj  runtime.Object
		want string
	}{
		{named(&unstructured.Unstructured{}, "v1", "AllowList"), "v1 AllowList"},
		{named(&metav1.PartialObjectMetadata{}, "v1", "AllowList"), "v1 AllowList"},
		{named(&unstructured.UnstructuredList{}, "v1", "AllowListList"), "v1 AllowList"},
		{named(&metav1.PartialObjectMetadataList{}, "v1", "AllowListList"), "v1 AllowList"},
		{&corev1.PodList{}, "v1 Pod"},
		{&corev1.Pod{}, "v1 Pod"},
		{named(&corev1.Pod{}, "v2", "Pods"), "v1 Pod"},
		{named(&corev1.ConfigMap{}, "v1", "ConfigMap"), "v1 ConfigMap"},
		{named(&corev1.ConfigMap{}, "old.example.com/v1", "ConfigMap"), "old.example.com/v1 ConfigMap"},
		{&corev1.ConfigMap{}, ""},
		{named(&corev1.ConfigMap{}, "v2", "ConfigMap"), ""},
	} {
		k, err := Of(scheme, c.obj)
		got := k.GVK.GroupVersion().String() + " " + k.GVK.Kind
		if err != nil {
			got = ""
		}
		if got != c.want {
			t.Errorf("%T %v: %q, %v, want %q", c.obj, c.obj.GetObjectKind().GroupVersionKind(), got, err, c.want)
		}
	}
}
