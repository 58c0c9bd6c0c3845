package localapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/flyball-dev/flyball/localapi"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

func TestTables(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	mustCreate(t, maps, configMap("a", "k", "v"))
	mustCreate(t, maps, configMap("b"))
	table := func(path string) metav1.Table {
		t.Helper()
		code, body := answer(t, config, request{path: path, accept: asTable + ",application/json"})
		var table metav1.Table
		if err := json.Unmarshal([]byte(body), &table); err != nil || code != 200 || table.Kind != "Table" {
			t.Fatalf("%s: %d %v: %s", path, code, err, body)
		}
		return table
	}
	list := table("/api/v1/namespaces/default/configmaps")
	if len(list.Rows) != 2 || list.ColumnDefinitions[0].Name != "Name" || list.Rows[0].Cells[0] != "a" ||
		list.Rows[0].Cells[1] != 1.0 || list.ResourceVersion == "" {
		t.Errorf("table of a list: %+v", list)
	}
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(list.Rows[0].Object.Raw, &partial); err != nil ||
		partial.Kind != "PartialObjectMetadata" || partial.Name != "a" {
		t.Errorf("object of a row: %v, %s", err, list.Rows[0].Object.Raw)
	}
	if one := table("/api/v1/namespaces/default/configmaps/b?includeObject=Object"); len(one.Rows) != 1 ||
		!strings.Contains(string(one.Rows[0].Object.Raw), `"kind":"ConfigMap"`) {
		t.Errorf("table of an object: %+v", one)
	}
	set := request{
		method: "POST", path: "/apis/apps/v1/namespaces/default/replicasets",
		body: `{"metadata":{"name":"s"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{` +
			`"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
	}
	if code, body := answer(t, config, set); code != 201 {
		t.Fatalf("%d: %s", code, body)
	}
	if scale := table(set.path + "/s/scale"); len(scale.Rows) != 1 || len(scale.ColumnDefinitions) != 4 ||
		fmt.Sprint(scale.Rows[0].Cells[:3]) != "[s 3 0]" {
		t.Errorf("table of a scale: %+v", scale)
	}
	if none := table("/api/v1/configmaps?includeObject=None&limit=1"); len(none.Rows) != 1 ||
		len(none.Rows[0].Object.Raw) > len("null") || none.Continue == "" {
		t.Errorf("page of a table: %+v", none)
	}
}

// TestWithoutTables: reviews and most subresources have no table. A client that accepts something else gets that.
//
// Source: k8s.io/kubernetes v1.37.2 test/e2e/apimachinery/table_conversion.go.
func TestWithoutTables(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const (
		reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
		review  = `{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`
		account = "/api/v1/namespaces/default/serviceaccounts"
	)
	create := request{method: "POST", path: account, body: `{"metadata":{"name":"a"}}`}
	if code, body := answer(t, config, create); code != 201 {
		t.Fatalf("%d: %s", code, body)
	}
	for _, c := range []struct {
		path, body, accept string
		code               int
		says               string
	}{
		{reviews, review, asTable, 406, "only the following media types are accepted: application/json, "},
		{reviews, review, asTable + ",application/json", 201, `"kind":"SelfSubjectAccessReview"`},
		{account + "/a/token", `{"spec":{}}`, asTable, 406, "only the following media types are accepted: "},
		{account + "/a/token", `{"spec":{}}`, asTable + ",*/*", 201, `"kind":"TokenRequest"`},
	} {
		code, body := answer(t, config, request{method: "POST", path: c.path, body: c.body, accept: c.accept})
		if code != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s as %s: %d %s", c.path, c.accept, code, body)
		}
	}
}

// TestNotAcceptable: a form of answer that no list has is refused with the types of lists, also for a watch. A group or
// version without a kind is no form.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/apiserver_test.go TestTransform.
func TestNotAcceptable(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const (
		lists   = "only the following media types are accepted: application/json, application/yaml,"
		streams = "only the following media types are accepted: application/json;stream=watch,"
	)
	for accept, says := range map[string]string{
		"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1": lists,
		"application/json;g=meta.k8s.io;v=v1":                             lists,
		"application/json;as=Table;g=meta.k8s.io;v=v2":                    lists,
		"application/yaml": streams,
	} {
		code, body := answer(t, config, request{path: "/api/v1/services?watch=true&timeoutSeconds=1", accept: accept})
		if code != 406 || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s, want 406 %s", accept, code, body, says)
		}
	}
}

func TestTablesInWatchesHaveTheirColumnsOnce(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	mustCreate(t, maps, configMap("a"))
	mustCreate(t, maps, configMap("b"))
	response := send(t, config, request{path: "/api/v1/configmaps?watch=true", accept: asTable})
	defer response.Body.Close()
	var columns []int
	for f := range frames(t, response.Body) {
		var table metav1.Table
		if err := json.Unmarshal(f.Object, &table); err != nil || table.Kind != "Table" || len(table.Rows) != 1 {
			t.Fatalf("frame: %v, %s", err, f.Object)
		}
		columns = append(columns, len(table.ColumnDefinitions))
		if len(columns) == 2 {
			break
		}
	}
	if columns[0] == 0 || columns[1] != 0 {
		t.Errorf("frames have %v columns, want them in the first only", columns)
	}
}

func TestPartialMetadata(t *testing.T) {
	_, config := start(t, localapi.Options{})
	mustCreate(t, clientset(t, config).CoreV1().ConfigMaps("default"), configMap("a", "k", "v"))
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	gvr := corev1GVR("configmaps")
	list, err := client.Resource(gvr).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Fatalf("list of metadata: %v, %+v", err, list)
	}
	one, err := client.Resource(gvr).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || one.UID == "" {
		t.Errorf("metadata: %v, %+v", err, one)
	}
	w, err := client.Resource(gvr).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Object.(*metav1.PartialObjectMetadata).Name != "a" {
		t.Errorf("watch of metadata: %+v", e)
	}
}

func TestEncodings(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const path = "/api/v1/namespaces/default/configmaps"
	code, body := answer(t, config, request{
		method: "POST", path: path, contentType: "application/yaml", accept: "application/yaml",
		body: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n",
	})
	if code != 201 || !strings.Contains(body, "\ndata:\n  k: v\n") &&
		!strings.HasPrefix(body, "apiVersion: v1\ndata:\n  k: v\n") {
		t.Errorf("YAML: %d %s", code, body)
	}
	for accept, want := range map[string]string{
		"":                           "application/json",
		"*/*":                        "application/json",
		"text/html,application/yaml": "application/yaml",
		"application/vnd.kubernetes.protobuf,application/json":          "application/vnd.kubernetes.protobuf",
		"application/json;q=0.1,application/vnd.kubernetes.protobuf":    "application/vnd.kubernetes.protobuf",
		"application/json;Q=0.1,application/vnd.kubernetes.protobuf":    "application/vnd.kubernetes.protobuf",
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io,*/*":           "application/json",
		"application/json;as=Table;v=v9;g=meta.k8s.io,application/json": "application/json",
	} {
		response := send(t, config, request{path: path + "/a", accept: accept})
		_ = response.Body.Close()
		if got := response.Header.Get("Content-Type"); response.StatusCode != 200 || got != want {
			t.Errorf("accept %q: %d %s, want %s", accept, response.StatusCode, got, want)
		}
	}
	for name, c := range map[string]struct {
		r      request
		code   int
		reason metav1.StatusReason
	}{
		"unacceptable": {request{path: path, accept: "text/html"}, 406, metav1.StatusReasonNotAcceptable},
		"unsupported body": {
			request{method: "POST", path: path, contentType: "text/plain", body: "x"},
			415,
			metav1.StatusReasonUnsupportedMediaType,
		},
		"malformed body": {
			request{method: "POST", path: path, contentType: "application/json", body: "{"},
			400,
			metav1.StatusReasonBadRequest,
		},
		"another kind": {
			request{method: "POST", path: path, body: `{"kind":"Secret","apiVersion":"v1"}`},
			400,
			metav1.StatusReasonBadRequest,
		},
		"another version": {
			request{method: "POST", path: path, body: `{"kind":"ConfigMap","apiVersion":"v2"}`},
			400, metav1.StatusReasonBadRequest,
		},
		"put of a collection": {
			request{method: "PUT", path: path, body: `{}`},
			405,
			metav1.StatusReasonMethodNotAllowed,
		},
		"post of an object": {
			request{method: "POST", path: path + "/a", body: `{}`},
			405,
			metav1.StatusReasonMethodNotAllowed,
		},
		"another name": {
			request{method: "PUT", path: path + "/a", body: `{"metadata":{"name":"b"}}`},
			400,
			metav1.StatusReasonBadRequest,
		},
		"too large": {
			request{method: "POST", path: path, body: strings.Repeat(" ", 4<<20)},
			413,
			metav1.StatusReasonRequestEntityTooLarge,
		},
	} {
		code, body := answer(t, config, c.r)
		if code != c.code || statusOf(t, body).Reason != c.reason {
			t.Errorf("%s: %d %s, want %d %s", name, code, body, c.code, c.reason)
		}
	}
	for _, path := range []string{"/api/v1/nonsense", "/api/v1/namespaces/default/configmaps/a/nonsense"} {
		if code, body := answer(t, config, request{path: path}); code != http.StatusNotFound ||
			statusOf(t, body).Reason != metav1.StatusReasonNotFound {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	for _, path := range []string{"/apis/nonsense/v1/things", "/nonsense"} {
		if code, body := answer(t, config, request{path: path}); code != http.StatusNotFound ||
			body != "404 page not found\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
}
