package localapi_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/localapi"
)

// internalErrorsOfUpstream are parts of the internal errors that a kube-apiserver itself answers malformed requests
// with. The scripts of peers/localapi have a request for each.
var internalErrorsOfUpstream = []string{
	"resourceVersion should not be set on objects to be created", // create.txt
	"resourceVersion: Invalid value: ",                           // list.txt, watch.txt
	"strconv.ParseUint: parsing ",                                // patch.txt
	"failed to create typed patch object ",                       // apply.txt
	"unknown patch type: ",                                       // patch.txt, and the rest
	"list element types are not identical: ",
	"expected a []interface {}",
	"unable to find api field in struct ",
	"does not contain declared merge key: ",
}

// malformer makes requests of chance: each part is right more often than not, so that requests get far.
type malformer struct{ *rand.Rand }

func (m malformer) of(choices ...string) string { return choices[m.IntN(len(choices))] }

func (m malformer) seldom(right string, wrong ...string) string {
	if m.IntN(4) > 0 {
		return right
	}
	return m.of(wrong...)
}

var malformedValues = []string{
	"", "0", "-1", "1", "abc", "5", "99999999999999999999", "true", "nonsense,", "a=b", "a in (", "!",
	"metadata.name=a", "spec.x=1", "=", "All",
	"Exact", "NotOlderThan", "Orphan", "Strict", "\x00", "ä", strings.Repeat("x", 200), "a/b",
	"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
}

func (m malformer) query() string {
	q := url.Values{}
	for range m.IntN(4) {
		q.Add(m.of("dryRun", "fieldManager", "fieldValidation", "force", "resourceVersion", "resourceVersionMatch",
			"limit", "continue", "labelSelector",
			"fieldSelector", "watch", "timeoutSeconds", "sendInitialEvents", "allowWatchBookmarks",
			"gracePeriodSeconds", "propagationPolicy",
			"orphanDependents", "shardSelector", "pretty", "includeObject", "timeout"), m.of(malformedValues...))
	}
	return q.Encode()
}

// value is JSON of chance.
func (m malformer) value(depth int) string {
	switch n := m.IntN(9); {
	case n < 3 || depth == 0:
		return m.of("1", "-1", "0", "1.5", "null", "true", `""`, `"x"`, `"a"`, `"1Mi"`, `"2006-01-02T15:04:05Z"`,
			"99999999999999999999", "1e400", `"\ud800"`)
	case n < 5:
		return "[" + m.value(depth-1) + "," + m.value(depth-1) + "]"
	default:
		return "{" + m.field(depth-1) + "," + m.field(depth-1) + "}"
	}
}

func (m malformer) field(depth int) string {
	key := m.of("metadata", "spec", "status", "data", "name", "namespace", "uid", "resourceVersion", "labels",
		"annotations", "finalizers",
		"ownerReferences", "managedFields", "deletionTimestamp", "generateName", "containers", "template", "selector",
		"matchLabels", "replicas",
		"ports", "port", "kind", "apiVersion", "mode", "parts", "tags", "anything", "$patch", "$retainKeys",
		"$setElementOrder/containers",
		"$deleteFromPrimitiveList/finalizers", "", "nope", "strategy", "type", "rollingUpdate", "maxSurge",
		"preconditions", "deleteOptions", "target",
		"dryRun", "propagationPolicy", "clusterIP", "ipFamilies", "conditions")
	value := m.value(depth)
	if key == "$patch" {
		value = m.seldom(value, `"delete"`, `"replace"`, `"merge"`, `"nonsense"`)
	}
	return fmt.Sprintf("%q:%s", key, value)
}

// place is a resource, or one of its objects.
type place struct{ path, name, object string }

var places = []place{
	{
		"/api/v1/namespaces/default/configmaps", "a",
		`"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}`,
	},
	{
		"/api/v1/namespaces/default/pods", "a",
		`"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}`,
	},
	{
		"/api/v1/namespaces/default/services", "a",
		`"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}`,
	},
	{"/api/v1/namespaces", "a", `"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}`},
	{
		"/apis/apps/v1/namespaces/default/deployments", "a",
		`"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"a":"a"}},"template":{"metadata":{"labels":{"a":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`,
	},
	{
		"/apis/coordination.k8s.io/v1/namespaces/default/leases", "a",
		`"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"}`,
	},
	{
		"/apis/example.com/v1/namespaces/default/gadgets", "a",
		`"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"mode":"fast"}`,
	},
	{
		"/apis/example.com/v1beta1/namespaces/default/gadgets", "a",
		`"apiVersion":"example.com/v1beta1","kind":"Gadget","metadata":{"name":"a"},"spec":{"mode":"fast"}`,
	},
	{
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "gadgets.example.com",
		`"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x.y"}`,
	},
	{
		"/apis/authorization.k8s.io/v1/subjectaccessreviews", "a",
		`"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"`,
	},
	{
		"/apis/policy/v1/namespaces/default/poddisruptionbudgets", "a",
		`"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"a"}`,
	},
}

// request is a request of chance.
func (m malformer) request() request {
	p := places[m.IntN(len(places))]
	r := request{path: p.path, method: m.of("GET", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE")}
	if named := m.IntN(5); r.method == "POST" && named == 0 || r.method != "POST" && named > 0 {
		r.path += "/" + m.seldom(p.name, "none", "A_B", "a%2Fb", "%00", strings.Repeat("x", 300))
		r.path += m.seldom("", "/status", "/scale", "/eviction", "/binding", "/finalize", "/nope")
	}
	if q := m.query(); q != "" {
		r.path += "?" + q
	}
	object := "{" + p.object + "," + m.field(3) + "}"
	r.body = m.seldom(object, m.value(4), "", "{", "null", "[]", object[:len(object)/2], "\x00", "k8s\x00\x0a\x04",
		`{"kind":"DeleteOptions","apiVersion":"v1"}`, "- a", "a: &a [*a]")
	r.contentType = m.seldom("application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
		"text/plain", "application/cbor", ";", "")
	if r.method == "PATCH" {
		r.contentType = m.of(jsonPatch, mergePatch, applyPatch, strategicPatch)
		if r.contentType == jsonPatch {
			r.body = m.seldom(m.operations(), r.body)
		} else {
			r.body = m.seldom("{"+m.field(3)+","+m.field(3)+"}", r.body)
		}
	}
	r.accept = m.seldom("application/json", "application/yaml", "text/html", "", ";;",
		"application/json;as=Table;g=meta.k8s.io;v=v1",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/vnd.kubernetes.protobuf")
	return r
}

// operations is a JSON patch.
func (m malformer) operations() string {
	var all []string
	for range m.IntN(4) {
		path := func() string {
			return m.of("", "/", "/data", "/data/k", "/metadata/labels/x", "/metadata/finalizers/-", "/spec",
				"/spec/containers/0", "/spec/containers/-1",
				"/spec/containers/9", "/kind", "/metadata/name", "/metadata/resourceVersion", "x", "/~",
				"/spec/replicas")
		}
		all = append(all, fmt.Sprintf(`{"op":%q,"path":%q,"from":%q,"value":%s}`,
			m.of("add", "remove", "replace", "move", "copy", "test", "nope"), path(), path(), m.value(2)))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// TestMalformedRequestsAreNoInternalErrors: a mistake of a client is told as one. A kube-apiserver calls some internal
// errors; they are the same here, and no others.
func TestMalformedRequestsAreNoInternalErrors(t *testing.T) {
	_, config := start(t, localapi.Options{})
	post := func(r request) { r.method = "POST"; _ = send(t, config, r).Body.Close() }
	post(
		request{
			path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", contentType: yamlBody,
			body: gadgetsYAML,
		},
	)
	m := malformer{rand.New(rand.NewPCG(19, 3))}
	seen := map[int]int{}
	for range 5000 {
		for _, p := range places { // whatever was deleted comes back
			if m.IntN(40) == 0 {
				post(request{path: p.path, body: "{" + p.object + "}"})
			}
		}
		r := m.request()
		response := send(t, config, r)
		if seen[response.StatusCode]++; response.StatusCode < 500 || response.StatusCode == http.StatusGatewayTimeout {
			_ = response.Body.Close() // which ends a watch
			continue
		}
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		body := string(text)
		known := func(part string) bool { return strings.Contains(body, part) }
		if !slices.ContainsFunc(internalErrorsOfUpstream, known) {
			t.Errorf("%s %s (%s)\n%s\n%d %s", r.method, r.path, r.contentType, r.body, response.StatusCode,
				body[:min(len(body), 1000)])
		}
	}
	t.Log(seen)
}

// TestCreateWithVersion: that a new object has a version is found when it is stored, which a dry run does not do.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/etcd3/store.go Create, pkg/registry/generic/registry/dryrun.go Create.
func TestCreateWithVersion(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const path = "/api/v1/namespaces/default/configmaps"
	object := func(name, version string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":%q}}`, name,
			version)
	}
	for _, c := range []struct {
		query, body string
		code        int
		text        string
	}{
		{"", object("a", "5"), 500, "resourceVersion should not be set on objects to be created"},
		{"?dryRun=All", object("a", "5"), 201, `"resourceVersion":"5"`},
		{"", object("A_", "5"), 422, "metadata.name"},
		{"", object("a", "0"), 201, ""},
		{"", object("b", "nonsense"), 201, ""},
		{"", object("a", "5"), 500, "resourceVersion should not be set on objects to be created"},
		{"?dryRun=All", object("a", "5"), 409, "already exists"},
	} {
		code, body := answer(t, config, request{method: "POST", path: path + c.query, body: c.body})
		if code != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s %s: %d %s", c.query, c.body, code, body)
		}
	}
}

// TestPatchTheLibraryPanicsOver: it is a bad patch.
func TestPatchTheLibraryPanicsOver(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if err := server.Seed(t.Context(), configMap("a")); err != nil {
		t.Fatal(err)
	}
	const path = "/api/v1/namespaces/default/configmaps/a"
	wantCode(t, config, 400,
		request{
			method: "PATCH", path: path, contentType: strategicPatch,
			body: `{"$retainKeys":[["x"]],"data":{"k":"v"}}`,
		})
	wantCode(t, config, 422, request{
		method: "PATCH", path: path, contentType: jsonPatch,
		body: `[{"op":"add","path":"/data","value":{"x":null}},{"op":"replace","path":"","value":null}]`,
	})
}
