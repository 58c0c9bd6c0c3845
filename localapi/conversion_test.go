package localapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
)

// converted is a definition with two versions, stored as v1, and the webhook hooks/convert.
func converted() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1"), version("v2")},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						Service: &apiextensionsv1.ServiceReference{Namespace: "hooks", Name: "convert"},
					},
				},
			},
		},
	}
}

// converting is a webhook for the type of converted. It tells before of every call.
func converting(t *testing.T, before func(*apiextensionsv1.ConversionRequest)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		before(review.Request)
		response := &apiextensionsv1.ConversionResponse{
			UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess},
		}
		for _, o := range review.Request.Objects {
			text := strings.Replace(string(o.Raw), `"apiVersion":"example.com/v`, `"via":"webhook","apiVersion":"old`, 1)
			text = strings.Replace(text, `"kind"`, `"apiVersion":"`+review.Request.DesiredAPIVersion+`","kind"`, 1)
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: []byte(text)})
		}
		review.Request, review.Response = nil, response
		_ = json.NewEncoder(w).Encode(review)
	})
}

// widgetsIn is the resource of the type of converted, and widget one of its objects in v1.
func widgetsIn(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "widgets"}
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
	}}
}

// TestConvert reads and writes objects in a version that a webhook converts to: a list with one call.
func TestConvert(t *testing.T) {
	s := localapi.NewTest(t, converted())
	calls := 0
	s.HandleWebhook("hooks/convert", converting(t, func(*apiextensionsv1.ConversionRequest) { calls++ }))
	client := dynamic.NewForConfigOrDie(s.RESTConfig())
	in := func(version string) dynamic.ResourceInterface { return client.Resource(widgetsIn(version)) }
	for _, name := range []string{"a", "b", "c"} {
		if _, err := in("v1").Create(t.Context(), widget(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 0 {
		t.Errorf("%d calls for the stored version", calls)
	}
	for range 2 { // the second comes from the cache
		list, err := in("v2").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 3 || calls != 1 {
			t.Fatalf("list: %v, %v, %d calls", list, err, calls)
		}
		if o := list.Items[2]; o.GetAPIVersion() != "example.com/v2" || o.Object["via"] != "webhook" {
			t.Errorf("converted: %v", o)
		}
	}
	s.HandleWebhook("hooks/convert", nil)
	if _, err := in("v1").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the stored version without a webhook: %v", err)
	}
	patch := []byte(`{"spec": {"x": 1}}`)
	_, err := in("v2").Patch(t.Context(), "a", "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "conversion webhook for example.com/v2, Kind=Widget failed: Post") {
		t.Errorf("a patch without a webhook: %v", err)
	}
}

// TestConvertOnlyWhatIsSent: a page of a list has only its own objects converted, and a watch of all objects only what
// they became.
func TestConvertOnlyWhatIsSent(t *testing.T) {
	s := localapi.NewTest(t, converted())
	objects := 0
	s.HandleWebhook("hooks/convert", converting(t, func(r *apiextensionsv1.ConversionRequest) {
		objects += len(r.Objects)
	}))
	client := dynamic.NewForConfigOrDie(s.RESTConfig())
	v1, v2 := client.Resource(widgetsIn("v1")), client.Resource(widgetsIn("v2"))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if _, err := v1.Create(t.Context(), widget(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var page string
	for i, want := range []int{2, 4, 5} {
		list, err := v2.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: page})
		if err != nil {
			t.Fatal(err)
		}
		if page = list.GetContinue(); objects != want {
			t.Errorf("page %d: %d objects were converted, want %d", i, objects, want)
		}
		for _, o := range list.Items {
			if o.Object["via"] != "webhook" {
				t.Errorf("page %d: %v was not converted", i, o)
			}
		}
	}
	version := func(name, x string) string {
		t.Helper()
		got, err := v1.Patch(t.Context(), name, types.MergePatchType, []byte(`{"x": "`+x+`"}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetResourceVersion()
	}
	since := version("a", "1") // nobody has read this state in v2
	objects = 0
	w, err := v2.Watch(t.Context(), metav1.ListOptions{ResourceVersion: since})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	version("a", "2")
	e := <-w.ResultChan()
	if o, ok := e.Object.(*unstructured.Unstructured); !ok || e.Type != watch.Modified || o.Object["x"] != "2" {
		t.Errorf("event: %v", e)
	}
	if objects != 1 {
		t.Errorf("%d objects were converted for an event, want 1", objects)
	}
}
