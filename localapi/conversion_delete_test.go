package localapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/localapi"
)

// TestDeleteConvertedDefinition deletes a definition whose objects nobody could read without the webhook. No webhook is
// called for it, whether the objects are stored in an old version or in one that is not served.
func TestDeleteConvertedDefinition(t *testing.T) {
	for name, change := range map[string]func([]apiextensionsv1.CustomResourceDefinitionVersion){
		"stored in an old version": func(v []apiextensionsv1.CustomResourceDefinitionVersion) {
			v[0].Storage, v[1].Storage = false, true
		},
		"stored in a version that is not served": func(v []apiextensionsv1.CustomResourceDefinitionVersion) {
			v[0].Served = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := converted()
			s := localapi.NewTest(t, d)
			client := dynamic.NewForConfigOrDie(s.RESTConfig())
			s.HandleWebhook("hooks/convert", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				t.Error("the webhook was called")
			}))
			_, err := client.Resource(widgetsIn("v1")).Create(t.Context(), widget("a"), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			change(d.Spec.Versions)
			replaceVersions(t, client, d)
			if err := client.Resource(crds).Delete(t.Context(), d.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = client.Resource(crds).Get(t.Context(), d.Name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("after the deletion: %v", err)
			}
		})
	}
}

// TestDeleteConvertedDefinitionWithHeldObjects: an object with a finalizer keeps the version in which it is stored, and
// its removal ends the deletion.
func TestDeleteConvertedDefinitionWithHeldObjects(t *testing.T) {
	d := converted()
	s := localapi.NewTest(t, d)
	client := dynamic.NewForConfigOrDie(s.RESTConfig())
	v1 := client.Resource(widgetsIn("v1"))
	held := widget("held")
	held.SetFinalizers([]string{"example.com/hold"})
	if _, err := v1.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true
	replaceVersions(t, client, d)
	if err := client.Resource(crds).Delete(t.Context(), d.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without a webhook, only objects that are stored in v1 can be read in v1.
	got, err := v1.Get(t.Context(), "held", metav1.GetOptions{})
	if err != nil || got.GetDeletionTimestamp() == nil {
		t.Fatalf("the held object: %v, %v", got, err)
	}
	if _, err := v1.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(crds).Get(t.Context(), d.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last object: %v", err)
	}
}

// replaceVersions writes the versions of d to the server.
func replaceVersions(t *testing.T, client dynamic.Interface, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": d.Spec.Versions}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(crds).Patch(t.Context(), d.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestInvalidBundleOfConversion: a definition whose conversion has a bundle that is no certificate is not established
// until it has another one.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/controller/establish/establishing_controller.go.
func TestInvalidBundleOfConversion(t *testing.T) {
	client := dynamic.NewForConfigOrDie(localapi.NewTest(t).RESTConfig()).Resource(crds)
	d := converted()
	d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("no certificate")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if _, err := client.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	established := func() string {
		t.Helper()
		got, err := client.Get(t.Context(), d.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Established" {
				return c["status"].(string) + " " + c["reason"].(string)
			}
		}
		return ""
	}
	if got := established(); got != "False InvalidCABundle" {
		t.Errorf("with an invalid bundle: %q", got)
	}
	const path = `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":`
	if _, err := client.Patch(t.Context(), d.Name, types.MergePatchType, []byte(path+`null}}}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := established(); got != "True InitialNamesAccepted" {
		t.Errorf("without one: %q", got)
	}
	_, err = client.Patch(t.Context(), d.Name, types.MergePatchType, []byte(path+`"bm90"}}}}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("another invalid one, when it is established: %v", err)
	}
}
