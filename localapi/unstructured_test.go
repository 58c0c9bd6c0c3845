package localapi_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/internal/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// widgets is a type without a Go type, as custom resources are.
func widgets() *resource.Definition {
	return &resource.Definition{
		GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"},
		Kind:         "Widget", Plural: "widgets", Singular: "widget", Namespaced: true, HasStatus: true,
		New:                  func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} },
		NewList:              func() runtime.Object { return &unstructured.UnstructuredList{} },
		NeedsResourceVersion: true,
		Types:                managedfields.NewDeducedTypeConverter,
	}
}

func newWidget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": size},
	}}
}

func TestTypesWithoutAGoType(t *testing.T) {
	store := memoryStore(t)
	definitions := append(builtin.All(), widgets())
	first, config := start(t, localapi.Options{Storage: store}.Serving(definitions...))
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	api := client.Resource(widgets().GroupVersionResource()).Namespace("default")
	ctx := t.Context()
	created, err := api.Create(ctx, newWidget("a", 1), metav1.CreateOptions{})
	if err != nil || created.GetUID() == "" || len(created.GetManagedFields()) != 1 {
		t.Fatalf("create: %v, %+v", err, created)
	}
	w, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	patched, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"color":"blue"}}`),
		metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("merge patch: %v", err)
	}
	e := <-w.ResultChan()
	if got := e.Object.(*unstructured.Unstructured).GetResourceVersion(); got != patched.GetResourceVersion() {
		t.Errorf("watch event: %+v", e)
	}
	if _, err := api.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{}`),
		metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("strategic merge patch: %v, want UnsupportedMediaType", err)
	}
	applied, err := api.Apply(ctx, "b", newWidget("b", 2), metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	if _, err := api.Apply(ctx, "b", newWidget("b", 3),
		metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		t.Errorf("conflicting apply: %v", err)
	}
	blind := newWidget("b", 4)
	if _, err := api.Update(ctx, blind, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update without a version: %v, want Invalid", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	_, config = start(t, localapi.Options{Storage: withoutTags{store}}.Serving(definitions...))
	if client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(widgets().GroupVersionResource()).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.Items[1].GetResourceVersion() != applied.GetResourceVersion() {
		t.Errorf("list after reopening: %v, %+v", err, list)
	}
}
