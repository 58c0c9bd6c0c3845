package controllerruntime_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/localapi"
)

// widgetVersion is the group version of [widget].
var widgetVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// widget is a custom resource with a Go type, as an operator has it.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            widgetStatus `json:"status,omitempty"`
}

type widgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	return &widget{TypeMeta: w.TypeMeta, ObjectMeta: *w.ObjectMeta.DeepCopy(), Status: w.Status}
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
	schema := map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	}
	version := map[string]any{
		"name": widgetVersion.Version, "served": true, "storage": true, "schema": schema,
		"subresources": map[string]any{"status": map[string]any{}},
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": widgetVersion.Group, "scope": "Namespaced", "versions": []any{version},
			"names": map[string]any{"plural": "widgets", "kind": "Widget"},
		},
	}}
}

// widgets is a server that serves widgets, and controller-runtime's client of it.
func widgets(t *testing.T) client.WithWatch {
	t.Helper()
	api, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgetVersion.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(widgetVersion.WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	c, err := client.NewWithWatch(api.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), widgetDefinition()); err != nil {
		t.Fatal(err)
	}
	return c
}

func widgetNamed(name string) *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
}

// untypedWidget is a widget as an unstructured object.
func untypedWidget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	u.SetNamespace(metav1.NamespaceDefault)
	u.SetName(name)
	return u
}

// TestCustomResourcesAreDeleted: the client names the resource's own group version in the options of a delete.
func TestCustomResourcesAreDeleted(t *testing.T) {
	ctx, c := t.Context(), widgets(t)
	must := mustOf(t)
	bare := &metav1.PartialObjectMetadata{ObjectMeta: widgetNamed("c").ObjectMeta}
	bare.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	for _, o := range []client.Object{widgetNamed("a"), untypedWidget("b"), bare} {
		w := widgetNamed(o.GetName())
		must(c.Create(ctx, w))
		must(c.Delete(ctx, o, client.DryRunAll))
		must(
			c.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground),
				client.Preconditions{UID: &w.UID}),
		)
	}
	must(c.Create(ctx, widgetNamed("d")))
	must(c.DeleteAllOf(ctx, &widget{}, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0)))
	var left widgetList
	must(c.List(ctx, &left))
	if len(left.Items) != 0 {
		t.Errorf("%d widgets are left", len(left.Items))
	}
}

// TestCustomResourcesAreWritten uses every other verb, with the options of the client.
func TestCustomResourcesAreWritten(t *testing.T) {
	ctx, c := t.Context(), widgets(t)
	must := mustOf(t)
	w := widgetNamed("a")
	must(c.Create(ctx, widgetNamed("a"), client.DryRunAll, client.FieldValidation("Strict")))
	must(c.Create(ctx, w, client.FieldOwner("me"), client.FieldValidation("Strict")))
	w.Labels = map[string]string{"by": "update"}
	must(c.Update(ctx, w, client.FieldOwner("me"), client.FieldValidation("Warn")))
	w.Status.Phase = "updated"
	must(c.Status().Update(ctx, w, client.FieldOwner("me")))
	for by, patch := range map[string]func(before *widget) client.Patch{
		"merge": func(before *widget) client.Patch { return client.MergeFrom(before) },
		"merge, unchanged": func(before *widget) client.Patch {
			return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		},
		"JSON": func(*widget) client.Patch {
			return client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/metadata/labels/by","value":"JSON"}]`))
		},
	} {
		before := w.DeepCopyObject().(*widget)
		w.Labels["by"] = by[:4]
		must(c.Patch(ctx, w, patch(before), client.FieldOwner("me")))
		before = w.DeepCopyObject().(*widget)
		w.Status.Phase = by
		must(c.Status().Patch(ctx, w, client.MergeFrom(before)))
		if w.Labels["by"] != by[:4] || w.Status.Phase != by {
			t.Errorf("%s: %v, %q", by, w.Labels, w.Status.Phase)
		}
	}
	applied := untypedWidget("a")
	applied.SetAnnotations(map[string]string{"by": "apply"})
	must(
		c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("another"),
			client.ForceOwnership),
	)
	var list widgetList
	must(
		c.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault), client.HasLabels{"by"},
			client.MatchingFields{"metadata.name": "a"}, client.Limit(1)),
	)
	if len(list.Items) != 1 || list.Items[0].Annotations["by"] != "apply" {
		t.Errorf("list: %+v", list.Items)
	}
	watch, err := c.Watch(ctx, &widgetList{}, client.InNamespace(metav1.NamespaceDefault))
	must(err)
	defer watch.Stop()
	if e := <-watch.ResultChan(); e.Object.(*widget).Name != "a" {
		t.Errorf("watch: %+v", e)
	}
}

func mustOf(t *testing.T) func(error) {
	return func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}
