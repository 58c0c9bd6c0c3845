package localapi_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// TestOwnersAreManagedWhole: an owner reference is one value for the managers of fields, also in objects whose types
// are known only by their schemas.
//
// Source: k8s.io/apimachinery v0.37.2 pkg/apis/meta/v1/types.go OwnerReference, +structType=atomic.
func TestOwnersAreManagedWhole(t *testing.T) {
	client, api := gadgets(t)
	if _, err := api.Create(t.Context(), gadget(t, "a", "{mode: fast}"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]dynamic.ResourceInterface{"a": api, "gadgets.example.com": client.Resource(crds)} {
		patch := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]}}`
		got, err := of.Patch(t.Context(), name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: "me"})
		if err != nil {
			t.Fatal(err)
		}
		const want = `{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u\"}":{}}}}`
		if !slices.ContainsFunc(got.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == "me" && f.FieldsV1.GetRawString() == want
		}) {
			t.Errorf("%s: nobody manages %s: %v", name, want, got.GetManagedFields())
		}
	}
}
