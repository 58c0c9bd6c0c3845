package localapi_test

import (
	"testing"

	"github.com/flyball-dev/flyball/localapi"
)

// TestWordsOfErrors pins answers whose words clients were seen to depend on, or that are easily lost. All are
// kube-apiserver's, as found by sending it the same requests.
func TestWordsOfErrors(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const path = "/api/v1/namespaces/default/configmaps"
	send := func(method, path, contentType, body string) (int, string) {
		return answer(t, config, request{method: method, path: path, contentType: contentType, body: body})
	}
	if code, body := send("POST", path, "",
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`); code != 201 {
		t.Fatalf("create: %d %s", code, body)
	}
	const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
	for name, c := range map[string]struct {
		method, path, contentType, body string
		code                            int
		message, reason                 string
	}{
		"patch without syntax": {
			"PATCH", path + "/a", merge, `{"data":`, 400, "invalid JSON patch",
			"BadRequest",
		},
		"patch of no kind": {
			"PATCH", path + "/a", "text/plain", `{}`, 415,
			"415: Unsupported Media Type", "UnsupportedMediaType",
		},
		"no version": {
			"PATCH", path + "/a", merge, `{"metadata":{"resourceVersion":"x"}}`,
			500, `strconv.ParseUint: parsing "x": invalid syntax`, "",
		},
		"apply of what nobody knows": {
			"PATCH", path + "/a?fieldManager=m", apply,
			"{kind: ConfigMap, apiVersion: v1, metadata: {name: a}, nope: 1}", 500,
			"failed to create typed patch object (/a; /v1, Kind=ConfigMap): .nope: field not declared in schema", "",
		},
		"post of a name": {
			"POST", path + "/a", "", `{}`, 405,
			"the server does not allow this method on the requested resource", "MethodNotAllowed",
		},
		"unqualified finalizer": {
			"POST", path, "",
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","finalizers":["x"]}}`, 422,
			`ConfigMap "b" is invalid: metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified`, "Invalid",
		},
		"malformed continue token at a version": {
			"GET", path + "?continue=x&resourceVersion=1", "", "", 400,
			"invalid continue token: continue key is not valid: illegal base64 data at input byte 0", "BadRequest",
		},
		"continue at a version": {
			"GET", path + "?resourceVersion=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
			"", "", 400,
			"specifying resource version is not allowed when using continue", "BadRequest",
		},
		"no collection of namespaces to delete": {
			"DELETE", "/api/v1/namespaces", "", "", 405,
			"the server does not allow this method on the requested resource", "MethodNotAllowed",
		},
	} {
		code, body := send(c.method, c.path, c.contentType, c.body)
		if s := statusOf(t, body); code != c.code || s.Message != c.message || string(s.Reason) != c.reason {
			t.Errorf("%s: %d %q %q", name, code, s.Reason, s.Message)
		}
	}
}
