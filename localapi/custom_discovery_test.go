package localapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi"
)

// ask sends a GET to a server's handler.
func ask(s *localapi.Server, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestDiscoveryOfCustomResources: what a definition adds is in both forms of discovery as long as it is there, and
// whoever has seen the present state of it is only told so.
func TestDiscoveryOfCustomResources(t *testing.T) {
	server, config := start(t, localapi.Options{})
	api := dynamicClient(t, config).Resource(crds)
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	before := ask(server, "/apis", "Accept", aggregated)
	if before.Code != http.StatusOK || strings.Contains(before.Body.String(), "gadgets") {
		t.Fatalf("before: %d %s", before.Code, before.Body)
	}
	if known := ask(server, "/apis", "Accept", aggregated, "If-None-Match",
		before.Header().Get("ETag")); known.Code != http.StatusNotModified {
		t.Errorf("asked again: %d, want 304", known.Code)
	}
	if _, err := api.Create(t.Context(), fromYAML(t, gadgetsYAML), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	after := ask(server, "/apis", "Accept", aggregated, "If-None-Match", before.Header().Get("ETag"))
	if after.Code != http.StatusOK || !strings.Contains(after.Body.String(), `"resource":"gadgets"`) {
		t.Errorf("after: %d %s", after.Code, after.Body)
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(ask(server, "/apis/example.com").Body.Bytes(), &group); err != nil ||
		group.PreferredVersion.Version != "v1" || len(group.Versions) != 2 {
		t.Errorf("group: %v, %+v", err, group)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(ask(server, "/apis/example.com/v1").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range list.APIResources {
		names = append(names, fmt.Sprint(r.Name, r.ShortNames, r.Categories))
	}
	if want := "gadgets[gd] [all] gadgets/status[] [] gadgets/scale[] []"; strings.Join(names, " ") != want {
		t.Errorf("resources: %s, want %s", names, want)
	}
	if err := api.Delete(t.Context(), "gadgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if gone := ask(server, "/apis/example.com/v1"); gone.Code != http.StatusNotFound {
		t.Errorf("after the deletion: %d", gone.Code)
	}
}

// TestOpenAPIOfCustomResources: the document has the schema, with what every object has, and an address that names what
// it says.
func TestOpenAPIOfCustomResources(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if _, err := dynamicClient(t, config).Resource(crds).Create(t.Context(), fromYAML(t, gadgetsYAML),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var root struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		}
	}
	if err := json.Unmarshal(ask(server, "/openapi/v3").Body.Bytes(), &root); err != nil {
		t.Fatal(err)
	}
	answer := ask(server, root.Paths["apis/example.com/v1"].URL)
	if answer.Code != http.StatusOK || answer.Header().Get("Cache-Control") != "public, immutable" {
		t.Errorf("document: %d, %v", answer.Code, answer.Header())
	}
	if stale := ask(server, "/openapi/v3/apis/example.com/v1?hash=old"); stale.Code != http.StatusMovedPermanently {
		t.Errorf("an old address: %d, want 301", stale.Code)
	}
	var document struct {
		Paths      map[string]any
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Properties map[string]any }
				Kinds      []map[string]string `json:"x-kubernetes-group-version-kind"`
			}
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	s := document.Components.Schemas["com.example.v1.Gadget"]
	if len(s.Kinds) != 1 || s.Kinds[0]["kind"] != "Gadget" || s.Properties["spec"].Properties["replicas"] == nil {
		t.Errorf("schema: %+v", s)
	}
	if _, ok := s.Properties["metadata"]; !ok {
		t.Error("the schema has no metadata")
	}
	if document.Paths["/apis/example.com/v1/namespaces/{namespace}/gadgets/{name}/scale"] == nil {
		t.Error("the document has no path of the scale")
	}
}

// TestOpenAPIv2OfCustomResources: what the older document cannot express, or kubectl would take for more than it says,
// is left out.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/controller/openapi/v2/conversion_test.go,
// pkg/controller/openapi/builder/builder_test.go.
func TestOpenAPIv2OfCustomResources(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if _, err := dynamicClient(t, config).Resource(crds).Create(t.Context(), fromYAML(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [a, b]
            properties:
              a: {type: object, nullable: true, properties: {x: {type: string}}}
              b: {type: string}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: string}}}
              list: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: string}}
          counts: {type: object, additionalProperties: {type: integer, nullable: true}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        properties: {spec: {type: object}}
`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var document struct {
		Definitions map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(ask(server, "/openapi/v2").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	v1, v2 := document.Definitions["com.example.v1.Box"], document.Definitions["com.example.v2.Box"]
	got, err := json.Marshal([]any{v1.Properties["spec"], v1.Properties["counts"], v2})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"properties":{"a":{},"b":{"type":"string"},` +
		`"list":{"x-kubernetes-preserve-unknown-fields":true},"open":{"x-kubernetes-preserve-unknown-fields":true}},` +
		`"required":["b"],"type":"object"},` +
		`{"additionalProperties":{},"type":"object"},{"Type":"object","Properties":null}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestTablesOfCustomResources: the columns are the definition's, and of a type that names none the age.
func TestTablesOfCustomResources(t *testing.T) {
	server, config := start(t, localapi.Options{})
	client := dynamicClient(t, config)
	if _, err := client.Resource(crds).Create(t.Context(), fromYAML(t, gadgetsYAML),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(gadgetsV1).Namespace("default").Create(t.Context(), gadget(t, "a", "{mode: fast}"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"v1/gadgets": "[Name Replicas Mode] [a 1 fast]", "v1beta1/gadgets": "[Name Age] [a",
		"v1/namespaces/default/gadgets/a/scale": "[Name Desired Available Age] [a 1 0",
	} {
		var table metav1.Table
		answer := ask(server, "/apis/example.com/"+path, "Accept",
			"application/json;as=Table;v=v1;g=meta.k8s.io")
		if err := json.Unmarshal(answer.Body.Bytes(), &table); err != nil || len(table.Rows) != 1 {
			t.Fatalf("%s: %v, %s", path, err, answer.Body)
		}
		var columns []string
		for _, c := range table.ColumnDefinitions {
			columns = append(columns, c.Name)
		}
		if got := fmt.Sprint(columns, table.Rows[0].Cells); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
