package client_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

// IndexField is called before the kind is defined and before anything runs. It sends no request, and the index is there
// when the kind is.
func TestIndexBeforeTheKindIsDefined(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
		widget, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		widget.SetGroupVersionKind(gvk)
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind("WidgetList"))
		byColor := func(obj client.Object) []string { return []string{obj.GetLabels()["color"]} }
		w.must(w.IndexField(w.ctx, widget, "color", byColor))
		if err := w.IndexField(w.ctx, widget, "color", byColor); !errors.Is(err, informer.ErrIndexExists) {
			t.Errorf("twice: %v", err)
		}
		if n := len(w.api.Audit().Entries(nil)); n != 0 {
			t.Errorf("%d requests", n)
		}
		if err := w.List(w.ctx, list); err == nil {
			t.Error("a list of a kind that is not defined")
		}
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "widgets.example.com"},
			"spec": map[string]any{
				"group": "example.com", "scope": "Namespaced",
				"names": map[string]any{"kind": "Widget", "plural": "widgets"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{
						"openAPIV3Schema": map[string]any{"type": "object"},
					},
				}},
			},
		}}
		w.must(other(w).Create(w.ctx, definition))
		widget.SetNamespace("default")
		widget.SetName("a")
		widget.SetLabels(map[string]string{"color": "red"})
		w.must(other(w).Create(w.ctx, widget))
		for color, want := range map[string]int{"red": 1, "blue": 0} {
			w.must(w.List(w.ctx, list, client.MatchingFields{"color": color}))
			if len(list.Items) != want {
				t.Errorf("%s: %d", color, len(list.Items))
			}
		}
		if err := w.IndexField(w.ctx, widget, "color", byColor); !errors.Is(err, informer.ErrIndexExists) {
			t.Errorf("again: %v", err)
		}
	})
}

// A live read returns the server's answer and creates no cache.
func TestLiveReadsMakeNoCache(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		var list corev1.ConfigMapList
		w.must(w.List(w.ctx, &list, client.Live))
		w.must(w.APIReader().Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
		w.must(w.APIReader().List(w.ctx, &list, client.InNamespace("default")))
		if n := len(w.factory.Stats()); n != 0 || len(list.Items) != 1 || w.calls("watch") != 0 {
			t.Errorf("%d caches, %d objects, %d watches", n, len(list.Items), w.calls("watch"))
		}
	}, configMap("a"))
}
