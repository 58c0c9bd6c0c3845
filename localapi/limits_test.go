package localapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
)

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	strategicPatch = "application/strategic-merge-patch+json"
	yamlBody       = "application/yaml"
)

// laughs is YAML that is 10 KB times n with its aliases written out.
func laughs(kind string, n int) string {
	return kind + "\ndata:\n  a: &a " + strings.Repeat("ha", 5000) + strings.Join(numbered("\n  b%d: *a", n), "") + "\n"
}

// nestedLaughs is YAML of aliases within aliases: 10 to the power of n elements.
func nestedLaughs(kind string, n int) string {
	var b strings.Builder
	b.WriteString(kind + "\na0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n")
	for i := 1; i < n; i++ {
		alias := fmt.Sprintf("*a%d, ", i-1)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(alias, 10), ", "))
	}
	return b.String()
}

func numbered(format string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// TestTooLargeRequests: a request cannot make the server hold much more than it sends. The configuration map "a" is
// there.
//
// Source: k8s.io/apiserver v0.37.2 pkg/server/config.go MaxRequestBodyBytes, JSONPatchMaxCopyBytes.
func TestTooLargeRequests(t *testing.T) {
	const maps, gadgetsPath = "/api/v1/namespaces/default/configmaps", "/apis/example.com/v1/namespaces/default/gadgets"
	const head, custom = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "apiVersion: example.com/v1\nkind: " +
		"Gadget\nmetadata: {name: a}"
	large := strings.Repeat("x", 3<<20)
	doubling := "[" + strings.Join(numbered(`{"op":"copy","from":"/data","path":"/data/c%d"}`, 6), ",") + "]"
	deep := strings.Repeat("[", 100_000)
	config := gadgetServer(t)
	wantCode(t, config, 201,
		request{method: "POST", path: maps, contentType: yamlBody, body: head + "\ndata: {k: " + large[:200_000] + "}"})
	wantCode(t, config, 201,
		request{method: "POST", path: gadgetsPath, contentType: yamlBody, body: custom + "\nspec: {mode: fast}"})
	wantCode(t, config, 201,
		request{
			method: "POST", path: maps, contentType: yamlBody,
			body: laughs(strings.Replace(head, "a}", "b}", 1), 50),
		})
	for name, c := range map[string]struct {
		code         int
		method, path string
		contentType  string
		body         string
	}{
		"doubling copies": {422, "PATCH", maps + "/a", jsonPatch, doubling},
		"operations": {413, "PATCH", maps + "/a", jsonPatch, "[" +
			strings.Repeat(`{"op":"test","path":"/a"},`, 10_000) + `{}]`},
		"a body of JSON":      {413, "POST", maps, "", large + "x"},
		"a body of YAML":      {413, "POST", maps, yamlBody, large + "x"},
		"a body of protobuf":  {413, "POST", maps, "application/vnd.kubernetes.protobuf", large + "x"},
		"an update":           {413, "PUT", maps + "/a", "", large + "x"},
		"a merge patch":       {413, "PATCH", maps + "/a", mergePatch, large + "x"},
		"an apply":            {413, "PATCH", maps + "/a?fieldManager=m", applyPatch, large + "x"},
		"options of a delete": {413, "DELETE", maps + "/a", "", large + "x"},
		"aliases in YAML":     {413, "POST", maps, yamlBody, laughs(head, 500)},
		"aliases in an apply": {413, "PATCH", maps + "/a?fieldManager=m", applyPatch, laughs(head, 500)},
		"aliases in options of a delete": {
			413, "DELETE", maps + "/a", yamlBody,
			laughs("kind: DeleteOptions\napiVersion: v1", 500),
		},
		"aliases of aliases": {413, "POST", maps, yamlBody, nestedLaughs(head, 9)},
		"aliases of aliases in an apply": {
			413, "PATCH", maps + "/a?fieldManager=m", applyPatch,
			nestedLaughs(head, 9),
		},
		"an anchor within itself": {400, "POST", maps, yamlBody, head + "\ndata: &d {k: *d}"},
		"deep JSON": {400, "POST", maps, "", `{"apiVersion":"v1","kind":"ConfigMap","data":` +
			deep},
		"deep YAML": {400, "POST", maps, yamlBody, head + "\ndata: " + deep},
		"a deep merge patch": {400, "PATCH", maps + "/a", mergePatch, `{"data":` + deep +
			strings.Repeat("]", len(deep)) + "}"},
		"a deep JSON patch": {
			400, "PATCH", maps + "/a", jsonPatch,
			`[{"op":"add","path":"/data","value":` + deep + strings.Repeat("]", len(deep)) + "}]",
		},
		"a deep apply": {400, "PATCH", maps + "/a?fieldManager=m", applyPatch, head + "\ndata: " +
			deep},
		"a custom resource as it is stored": {
			413, "PATCH", gadgetsPath + "/a", mergePatch,
			`{"spec":{"anything":{"x":"` + large[:3<<19] + `"}}}`,
		},
		"a new custom resource": {
			413, "POST", gadgetsPath, yamlBody,
			strings.Replace(custom, "name: a", "name: b", 1) + "\nspec: {mode: fast, anything: {x: " + large[:3<<19] +
				"}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, config, c.code,
				request{method: c.method, path: c.path, contentType: c.contentType, body: c.body})
		})
	}
}

// TestManagedFieldsGoFirst: where an object is too large to be stored with its managed fields, it is stored without.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/create.go isTooLargeError.
func TestManagedFieldsGoFirst(t *testing.T) {
	config := gadgetServer(t)
	name := strings.Repeat("x", 1000) + "%d"
	fields := `"` + strings.Join(numbered(name, 1000), `":1,"`) + `":1` // a megabyte, and another in the managed fields
	body := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"mode":"fast","anything":{` + fields + `}}}`
	wantCode(t, config, 201,
		request{method: "POST", path: "/apis/example.com/v1/namespaces/default/gadgets", body: body})
	_, text := answer(t, config, request{path: "/apis/example.com/v1/namespaces/default/gadgets/a"})
	var stored struct{ Metadata struct{ ManagedFields []any } }
	if err := json.Unmarshal([]byte(text), &stored); err != nil || len(stored.Metadata.ManagedFields) != 0 {
		t.Errorf("%v, %d managers", err, len(stored.Metadata.ManagedFields))
	}
}

// gadgetServer is a server with the type of gadgets.
func gadgetServer(t *testing.T) *rest.Config {
	t.Helper()
	_, config := start(t, localapi.Options{})
	wantCode(t, config, 201, request{
		method: "POST", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", contentType: yamlBody,
		body: gadgetsYAML,
	})
	return config
}

func wantCode(t *testing.T, config *rest.Config, code int, r request) {
	t.Helper()
	if got, body := answer(t, config, r); got != code {
		t.Errorf("%s %s: %d, want %d\n%s", r.method, r.path, got, code, body[:min(len(body), 500)])
	}
}
