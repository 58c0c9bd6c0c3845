package controllerruntime_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/localapi"
)

// widgetVersion is the group version of [widget].
var widgetVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// widget is a custom resource with a Go type, as an operator has it.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	return &widget{TypeMeta: w.TypeMeta, ObjectMeta: *w.ObjectMeta.DeepCopy()}
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	c := &widgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*widget))
	}
	return c
}

// widgetDefinition defines the custom resource.
func widgetDefinition() *unstructured.Unstructured {
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	version := map[string]any{"name": widgetVersion.Version, "served": true, "storage": true, "schema": schema}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": widgetVersion.Group, "scope": "Namespaced", "versions": []any{version},
			"names": map[string]any{"plural": "widgets", "kind": "Widget"},
		},
	}}
}

// TestCustomResourcesAreDeleted: the client names the resource's own group version in the options of a delete.
func TestCustomResourcesAreDeleted(t *testing.T) {
	ctx := context.Background()
	api, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgetVersion.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(widgetVersion.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	c, err := client.New(api.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Create(ctx, widgetDefinition()))
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	}
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	untyped.SetNamespace(metav1.NamespaceDefault)
	untyped.SetName("b")
	bare := &metav1.PartialObjectMetadata{ObjectMeta: named("c")}
	bare.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	for i, o := range []client.Object{&widget{ObjectMeta: named("a")}, untyped, bare} {
		w := &widget{ObjectMeta: named(o.GetName())}
		must(c.Create(ctx, w))
		if i == 0 {
			must(c.Delete(ctx, o, client.DryRunAll))
		}
		must(c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &w.UID}))
	}
	must(c.Create(ctx, &widget{ObjectMeta: named("d")}))
	must(c.DeleteAllOf(ctx, &widget{}, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0)))
	var left widgetList
	must(c.List(ctx, &left))
	if len(left.Items) != 0 {
		t.Errorf("%d widgets are left", len(left.Items))
	}
}
