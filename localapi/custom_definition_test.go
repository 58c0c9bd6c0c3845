package localapi_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/localapi"
)

func TestDefinitionIsEstablishedWhenItIsAnswered(t *testing.T) {
	client, api := gadgets(t)
	got, err := client.Resource(crds).Get(t.Context(), "gadgets.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	conditions, _ := value(t, got, "status.conditions").([]any)
	for _, c := range conditions {
		c := c.(map[string]any)
		text = append(text, fmt.Sprintf("%s=%s %s", c["type"], c["status"], c["reason"]))
	}
	if want := "NamesAccepted=True NoConflicts, Established=True InitialNamesAccepted"; strings.Join(text,
		", ") != want {
		t.Errorf("conditions: %s, want %s", text, want)
	}
	if _, err := api.Create(t.Context(), gadget(t, "a", "{mode: fast}"), metav1.CreateOptions{}); err != nil {
		t.Errorf("create an object of it: %v", err)
	}
}

// TestDefinitionDeletion: the objects go first; one with a finalizer holds the definition, and nothing new comes.
func TestDefinitionDeletion(t *testing.T) {
	client, api := gadgets(t)
	ctx := t.Context()
	held := gadget(t, "held", "{mode: fast}")
	held.SetFinalizers([]string{"example.com/hold"})
	for _, obj := range []*unstructured.Unstructured{held, gadget(t, "free", "{mode: fast}")} {
		if _, err := api.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := api.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := client.Resource(crds).Delete(ctx, "gadgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := client.Resource(crds).Get(ctx, "gadgets.example.com", metav1.GetOptions{})
	if err != nil || fmt.Sprint(got.GetFinalizers()) != "[customresourcecleanup.apiextensions.k8s.io]" ||
		got.GetDeletionTimestamp() == nil {
		t.Fatalf("while an object is held: %v, %v", err, got)
	}
	if _, err := api.Create(ctx, gadget(t, "late", "{mode: fast}"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create during the deletion: %v", err)
	}
	left, err := api.List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].GetName() != "held" {
		t.Errorf("left: %v, %v", err, left)
	}
	if _, err := api.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(crds).Get(ctx, "gadgets.example.com",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("definition after the last object: %v", err)
	}
	if _, err := api.List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("list of a type that is gone: %v", err)
	}
	for range w.ResultChan() { //nolint:revive // until the server ends the watch
	}
}

// TestNameConflicts: a name belongs to who had it first; it is free again when that definition is gone.
func TestNameConflicts(t *testing.T) {
	client, _ := gadgets(t)
	ctx := t.Context()
	second := fromYAML(t, strings.NewReplacer("gadgets", "gizmos").Replace(gadgetsYAML))
	if _, err := client.Resource(crds).Create(ctx, second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	condition := func() string {
		got, err := client.Resource(crds).Get(ctx, "gizmos.example.com", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := value(t, got, "status.conditions").([]any)[0].(map[string]any)
		return fmt.Sprint(c["status"], " ", c["reason"], " ", c["message"])
	}
	if got := condition(); !strings.HasPrefix(got, "False ShortNamesConflict") &&
		!strings.HasPrefix(got, "False ListKindConflict") {
		t.Errorf("condition: %s", got)
	}
	if err := client.Resource(crds).Delete(ctx, "gadgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := condition(); got != "True NoConflicts no conflicts found" {
		t.Errorf("condition after the other is gone: %s", got)
	}
}

// TestInvalidDefinitions: the messages are those of a kube-apiserver.
func TestInvalidDefinitions(t *testing.T) {
	_, config := start(t, localapi.Options{})
	api := dynamicClient(t, config).Resource(crds)
	for _, c := range []struct{ replace, by, want string }{
		{
			"name: gadgets.example.com", "name: widgets.example.com",
			`metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group`,
		},
		{
			"scope: Namespaced", "scope: Galaxy",
			`spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"`,
		},
		{
			"x-kubernetes-int-or-string: true", "nullable: true",
			`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[port].type: Required value: must not be empty for specified object fields`,
		},
		{
			"default: 1}", "default: 9}",
			`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[replicas].default: Invalid value: 9:  in body should be less than or equal to 5`,
		},
		{
			"specReplicasPath: .spec.replicas", "specReplicasPath: .status.replicas",
			`spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".status.replicas": should be a json path under .spec`,
		},
		{
			"type: integer, jsonPath", "type: whole, jsonPath",
			`spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "whole": must be one of boolean,date,integer,number,string`,
		},
		{
			"x-kubernetes-list-map-keys: [name]", "x-kubernetes-list-map-keys: [nome]",
			`spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[parts].x-kubernetes-list-map-keys: Invalid value: ["nome"]: entries must all be names of item properties`,
		},
	} {
		text := strings.Replace(gadgetsYAML, c.replace, c.by, 1)
		_, err := api.Create(t.Context(), fromYAML(t, text), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.by, err, c.want)
		}
	}
}

// TestUnsupportedFeaturesAreReported: a warning names what this server ignores in a definition.
func TestUnsupportedFeaturesAreReported(t *testing.T) {
	_, config := start(t, localapi.Options{})
	var said []string
	config.WarningHandler = warningFunc(func(text string) { said = append(said, text) })
	text := strings.Replace(gadgetsYAML, "mode: {type: string, enum",
		`mode: {type: string, x-kubernetes-validations: [{rule: "self != 'x'"}], enum`, 1)
	if _, err := dynamicClient(t, config).Resource(crds).Create(t.Context(), fromYAML(t, text),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want := "[x-kubernetes-validations: this server does not evaluate CEL: the rules of version v1 (1) are not " +
		"enforced]"
	if got := fmt.Sprint(said); got != want {
		t.Errorf("warnings:\n got %s\nwant %s", got, want)
	}
}

// TestDefinitionsAreManaged: what the server says of a definition it owns by condition, as a kube-apiserver does.
func TestDefinitionsAreManaged(t *testing.T) {
	client, _ := gadgets(t)
	got, err := client.Resource(crds).Get(t.Context(), "gadgets.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got.GetManagedFields() {
		if f.Manager == "kube-apiserver" &&
			strings.Contains(f.FieldsV1.GetRawString(), `k:{\"type\":\"Established\"}`) && f.Subresource == "status" {
			return
		}
	}
	t.Errorf("managed fields: %v", got.GetManagedFields())
}

type warningFunc func(string)

func (f warningFunc) HandleWarningHeader(_ int, _, text string) { f(text) }
