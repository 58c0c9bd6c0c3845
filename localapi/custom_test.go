package localapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/localapi"
)

// gadgetsYAML defines a type with much of what a schema can say.
const gadgetsYAML = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget, shortNames: [gd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Mode, type: string, jsonPath: .spec.mode}
    selectableFields:
    - jsonPath: .spec.mode
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [mode]
            properties:
              replicas: {type: integer, minimum: 0, maximum: 5, default: 1}
              mode: {type: string, enum: [fast, slow]}
              port: {x-kubernetes-int-or-string: true}
              note: {type: string, maxLength: 5, nullable: true}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
              labels: {type: object, additionalProperties: {type: string}}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    size: {type: integer, default: 3, maximum: 10}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              phase: {type: string, enum: [Good, Bad]}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

var (
	crds      = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	gadgetsV1 = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func dynamicClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// gadgets is a server with the type defined, and a client of its v1 in the namespace "default".
func gadgets(t *testing.T) (dynamic.Interface, dynamic.ResourceInterface) {
	t.Helper()
	_, config := start(t, localapi.Options{})
	client := dynamicClient(t, config)
	if _, err := client.Resource(crds).Create(t.Context(), fromYAML(t, gadgetsYAML),
		metav1.CreateOptions{}); err != nil {
		t.Fatalf("create definition: %v", err)
	}
	return client, client.Resource(gadgetsV1).Namespace("default")
}

func gadget(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	return fromYAML(t,
		fmt.Sprintf("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: %s}, spec: %s}", name, spec))
}

func value(t *testing.T, u *unstructured.Unstructured, path string) any {
	t.Helper()
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDefaultsPruningAndCoercion: what comes out of the schema is what a kube-apiserver makes of it.
func TestDefaultsPruningAndCoercion(t *testing.T) {
	_, api := gadgets(t)
	created, err := api.Create(t.Context(), gadget(t, "a",
		"{mode: fast, note: null, port: 80, what: 1, anything: {x: 1}, labels: {a: b}, parts: [{name: p, other: 1}, "+
			"{name: q, size: 4}], template: {apiVersion: v1, kind: Pod, metadata: {name: x, odd: 1}, spec: {}}}"),
		metav1.CreateOptions{FieldValidation: "Ignore"})
	if err != nil {
		t.Fatal(err)
	}
	want := fromYAML(t,
		"{anything: {x: 1}, labels: {a: b}, mode: fast, note: null, parts: [{name: p, size: 3}, {name: q, size: 4}], "+
			"port: 80, replicas: 1, template: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}}").Object
	if got := created.Object["spec"]; fmt.Sprint(got) != fmt.Sprint(any(want)) {
		t.Errorf("spec:\n got %v\nwant %v", got, want)
	}
	if created.GetGeneration() != 1 {
		t.Errorf("generation %d, want 1", created.GetGeneration())
	}
}

// TestAppliedScale: a whole number that is applied is one for the scale, too. Helm applies the number of replicas.
func TestAppliedScale(t *testing.T) {
	_, api := gadgets(t)
	for i, replicas := range []string{"2", "2.0"} {
		name := fmt.Sprint("a", i)
		text := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"` + name +
			`"},"spec":{"mode":"fast","replicas":` + replicas + `}}`
		applied, err := api.Patch(t.Context(), name, types.ApplyYAMLPatchType, []byte(text),
			metav1.PatchOptions{FieldManager: "helm"})
		if err != nil {
			t.Fatal(err)
		}
		if got := value(t, applied, "spec.replicas"); got != int64(2) {
			t.Errorf("%s replicas are %T %v", replicas, got, got)
		}
		scale, err := api.Get(t.Context(), name, metav1.GetOptions{}, "scale")
		if err != nil {
			t.Fatal(err)
		}
		if got := value(t, scale, "spec.replicas"); got != int64(2) {
			t.Errorf("the scale has %v replicas", got)
		}
	}
}

func TestSchemaViolations(t *testing.T) {
	_, api := gadgets(t)
	for _, c := range []struct{ spec, want string }{
		{"{}", `spec.mode: Required value`},
		{"{mode: odd}", `spec.mode: Unsupported value: "odd": supported values: "fast", "slow"`},
		{
			"{mode: fast, replicas: -1}",
			`[spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, ` +
				`.spec.replicas: Invalid value: -1: should be a non-negative integer]`,
		},
		{
			"{mode: fast, replicas: many}",
			`[spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string", ` +
				`.spec.replicas: Invalid value: 0: .spec.replicas accessor error: many is of the type string, expected int64]`,
		},
		{"{mode: fast, note: too long}", `spec.note: Too long: may not be more than 5 bytes`},
		{
			"{mode: fast, port: 1.5}",
			`spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"`,
		},
		{"{mode: fast, parts: [{name: a}, {name: a}]}", `spec.parts[1]: Duplicate value: {"name":"a"}`},
		{
			"{mode: fast, parts: [{size: 11, name: a}]}",
			`spec.parts[0].size: Invalid value: 11: spec.parts[0].size in body should be less than or equal to 10`,
		},
		{"{mode: fast, tags: [a, a]}", `spec.tags[1]: Duplicate value: "a"`},
		{"{mode: fast, template: {kind: Pod}}", `spec.template.apiVersion: Required value`},
	} {
		_, err := api.Create(t.Context(), gadget(t, "a", c.spec), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || err.Error() != `Gadget.example.com "a" is invalid: `+c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.spec, err, c.want)
		}
	}
	_, err := api.Create(t.Context(), gadget(t, "a", "{mode: fast, what: 1, parts: [{name: a, odd: 1}]}"),
		metav1.CreateOptions{FieldValidation: "Strict"})
	want := `Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: unknown field "spec.parts[0].odd", unknown field "spec.what"`
	if !apierrors.IsBadRequest(err) || err.Error() != want {
		t.Errorf("strict:\n got %v\nwant %s", err, want)
	}
}

// TestRatcheting: a value that the schema has come to forbid does not stop changes elsewhere.
func TestRatcheting(t *testing.T) {
	client, api := gadgets(t)
	ctx := t.Context()
	if _, err := api.Create(ctx, gadget(t, "a", "{mode: fast, note: abcde, parts: [{name: p, size: 9}]}"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stricter := `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/note/maxLength","value":2},
		{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/parts/items/properties/size/maximum","value":5}]`
	if _, err := client.Resource(crds).Patch(ctx, "gadgets.example.com", types.JSONPatchType, []byte(stricter),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Patch(ctx, "a", types.MergePatchType,
		[]byte(`{"spec":{"replicas":2,"parts":[{"name":"new"},{"name":"p","size":9}]}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("change elsewhere: %v", err)
	}
	if _, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"note":"abcd"}}`),
		metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("change to another forbidden value: %v", err)
	}
	if _, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"parts":[{"name":"q","size":9}]}}`),
		metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a new item with a forbidden value: %v", err)
	}
}

func TestCustomStatusAndScale(t *testing.T) {
	_, api := gadgets(t)
	ctx := t.Context()
	obj := gadget(t, "a", "{mode: fast, replicas: 2}")
	obj.Object["status"] = map[string]any{"phase": "Good"}
	created, err := api.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil || created.Object["status"] != nil {
		t.Fatalf("create: %v, status %v", err, created.Object["status"])
	}
	created.Object["status"] = map[string]any{"phase": "Good", "replicas": int64(1), "selector": "a=b"}
	created.Object["spec"].(map[string]any)["mode"] = "slow"
	updated, err := api.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	if err != nil || value(t, updated, "spec.mode") != "fast" || value(t, updated, "status.phase") != "Good" ||
		updated.GetGeneration() != 1 {
		t.Fatalf("update status: %v, %v", err, updated)
	}
	if _, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"status":{"phase":"Odd"}}`), metav1.PatchOptions{},
		"status"); !apierrors.IsInvalid(err) {
		t.Errorf("bad status: %v", err)
	}
	scale, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{},
		"scale")
	if err != nil || value(t, scale, "spec.replicas") != int64(4) || value(t, scale, "status.replicas") != int64(1) ||
		value(t, scale, "status.selector") != "a=b" {
		t.Fatalf("scale: %v, %v", err, scale)
	}
	if _, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":9}}`), metav1.PatchOptions{},
		"scale"); err == nil {
		t.Error("the schema does not bind the scale")
	}
	got, err := api.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || value(t, got, "spec.replicas") != int64(4) || got.GetGeneration() != 2 {
		t.Errorf("after scaling: %v, %v", err, got)
	}
}

// TestCustomApply: lists that are maps and sets merge by their keys, and a field that the schema lacks is refused.
func TestCustomApply(t *testing.T) {
	_, api := gadgets(t)
	ctx := t.Context()
	apply := func(manager, spec string) (*unstructured.Unstructured, error) {
		return api.Apply(ctx, "a", gadget(t, "a", spec), metav1.ApplyOptions{FieldManager: manager})
	}
	if _, err := apply("one", "{mode: fast, parts: [{name: a}], tags: [one]}"); err != nil {
		t.Fatal(err)
	}
	got, err := apply("two", "{parts: [{name: b, size: 7}], tags: [two]}")
	if err != nil || fmt.Sprint(value(t, got, "spec.parts")) != "[map[name:a size:3] map[name:b size:7]]" ||
		fmt.Sprint(value(t, got, "spec.tags")) != "[one two]" {
		t.Errorf("apply: %v, %v", err, got)
	}
	if _, err = apply("two", "{mode: slow}"); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `conflict with "one": .spec.mode`) {
		t.Errorf("conflict: %v", err)
	}
	if _, err = apply("two", "{odd: 1}"); err == nil ||
		!strings.Contains(err.Error(), `.spec.odd: field not declared in schema`) {
		t.Errorf("unknown field: %v", err)
	}
	if got, err = apply("one", "{mode: fast}"); err != nil ||
		fmt.Sprint(value(t, got, "spec.parts")) != "[map[name:b size:7]]" {
		t.Errorf("an item that nobody wants any more: %v, %v", err, got)
	}
}

// TestCustomVersions: the versions of a type are the same objects, whoever wrote them by which.
func TestCustomVersions(t *testing.T) {
	client, api := gadgets(t)
	ctx := t.Context()
	old := client.Resource(gadgetsV1.GroupResource().WithVersion("v1beta1")).Namespace("default")
	w, err := api.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	obj := gadget(t, "a", "{mode: fast, odd: 1}")
	obj.SetAPIVersion("example.com/v1beta1")
	created, err := old.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil || created.GetAPIVersion() != "example.com/v1beta1" || value(t, created, "spec.odd") != int64(1) ||
		value(t, created, "spec.replicas") != nil {
		t.Fatalf("create by the old version: %v, %v", err, created)
	}
	event := (<-w.ResultChan()).Object.(*unstructured.Unstructured)
	if event.GetAPIVersion() != "example.com/v1" || value(t, event, "spec.odd") != nil ||
		value(t, event, "spec.replicas") != int64(1) {
		t.Errorf("watched by the new version: %v", event)
	}
	if _, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`),
		metav1.PatchOptions{FieldManager: "new"}); err != nil {
		t.Fatal(err)
	}
	got, err := old.Get(ctx, "a", metav1.GetOptions{})
	if err != nil || value(t, got, "spec.replicas") != int64(3) {
		t.Fatalf("read by the old version: %v, %v", err, got)
	}
	var managers []string
	for _, f := range got.GetManagedFields() {
		managers = append(managers, f.Manager+" "+f.APIVersion)
	}
	if len(managers) != 2 || !slices.Contains(managers, "new example.com/v1") {
		t.Errorf("managers: %q", managers)
	}
}

// TestCustomTypesSurvive: a server made on the storage of another serves what that served.
func TestCustomTypesSurvive(t *testing.T) {
	store := memoryStore(t)
	ctx := context.Background()
	first, config := start(t, localapi.Options{Storage: store})
	client := dynamicClient(t, config)
	if _, err := client.Resource(crds).Create(ctx, fromYAML(t, gadgetsYAML), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(gadgetsV1).Namespace("default").Create(ctx, gadget(t, "a", "{mode: fast}"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, config = start(t, localapi.Options{Storage: withoutTags{store}})
	got, err := dynamicClient(t, config).Resource(gadgetsV1).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
	if err != nil || value(t, got, "spec.replicas") != int64(1) {
		t.Errorf("after reopening: %v, %v", err, got)
	}
}

func TestSelectableFieldsOfCustomResources(t *testing.T) {
	_, api := gadgets(t)
	for _, spec := range []string{"{mode: fast}", "{mode: slow}"} {
		obj := gadget(t, "x", spec)
		obj.SetName("")
		obj.SetGenerateName("g-")
		if _, err := api.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := api.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.mode=slow"})
	if err != nil || len(list.Items) != 1 || value(t, &list.Items[0], "spec.mode") != "slow" {
		t.Errorf("list by field: %v, %v", err, list)
	}
}
