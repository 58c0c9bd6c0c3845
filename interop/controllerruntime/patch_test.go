package controllerruntime

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestMergePatchesAreComputedHere: the base of a merge patch is found, and our patch is that of controller-runtime. All
// other patches are theirs.
func TestMergePatchesAreComputedHere(t *testing.T) {
	pod := func(image string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "a", Namespace: "default", ResourceVersion: "7", UID: "u", Labels: labels,
				Annotations: map[string]string{"k": image},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
		}
	}
	base := pod("one", map[string]string{"a": "1", "b": "2"})
	changed := pod("two", map[string]string{"b": "3", "c": "4"})
	tree := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "spec": spec,
		}}
	}
	things := tree(map[string]any{"n": int64(1), "x": 1.5, "gone": true, "null": nil, "list": []any{int64(1), "b"}})
	for _, from := range []client.Object{base, things} {
		p := client.MergeFrom(from)
		if baseOf(p) != from || baseOf(client.MergeFromWithOptions(from)) != from {
			t.Errorf("the base of %T was not found: has the type changed?", p)
		}
		for _, obj := range []client.Object{
			changed, base, pod("one", nil),
			things, tree(nil), tree(map[string]any{"n": 1.0, "x": nil, "list": []any{}}),
		} {
			if reflect.TypeOf(obj) != reflect.TypeOf(from) {
				continue
			}
			ours, err1 := patch{p}.Data(obj)
			theirs, err2 := p.Data(obj)
			var got, want map[string]any
			if err := errors.Join(err1, err2, json.Unmarshal(ours, &got), json.Unmarshal(theirs, &want)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the patch is %s, want %s", ours, theirs)
			}
		}
	}
	for name, p := range map[string]client.Patch{
		"optimistic lock": client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}),
		"strategic":       client.StrategicMergeFrom(base), "raw": client.RawPatch(types.MergePatchType, []byte("{}")),
		"whole": client.Merge,
	} {
		if baseOf(p) != nil {
			t.Errorf("%s: it has a base", name)
		}
		ours, err1 := patch{p}.Data(changed)
		theirs, err2 := p.Data(changed)
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("%s: %s, %v, want %s", name, ours, err, theirs)
		}
	}
}

// TestKindsNamedLikeLists: an object may have a kind like AllowList. Only the kind of a list is shortened.
func TestKindsNamedLikeLists(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "AllowList"}
	obj, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	obj.SetGroupVersionKind(gvk)
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind("AllowListList"))
	for _, o := range []runtime.Object{obj, list} {
		k, err := (&Cache{settings: &settings{}}).kindOf(o)
		if err != nil || k.gvk != gvk {
			t.Errorf("%T: %v, %v", o, k.gvk, err)
		}
	}
}
