package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
)

// unreadable is a transport that replaces the answers to writes by a body, as a proxy may do.
type unreadable struct {
	http.RoundTripper
	contentType, body string
}

func (u *unreadable) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet && u.contentType != "" {
		_ = response.Body.Close()
		response.Header.Set("Content-Type", u.contentType)
		response.ContentLength, response.Body = -1, io.NopCloser(strings.NewReader(u.body))
	}
	return response, err
}

// TestUnreadableAnswer: a success whose body is no object is an error. The server may have stored the write, so the
// next read of a reconcile shows it.
func TestUnreadableAnswer(t *testing.T) {
	writes := map[string]func(w *world) error{
		"create": func(w *world) error { return w.Create(w.ctx, configMap("new", "is", "there")) },
		"update": func(w *world) error { return w.Update(w.ctx, configMap("old", "is", "there")) },
		"patch": func(w *world) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"is":"there"}}}`))
			return w.Patch(w.ctx, configMap("old"), patch)
		},
		"apply": func(w *world) error {
			u := anyMap()
			u.SetNamespace("default")
			u.SetName("old")
			u.SetLabels(map[string]string{"is": "there"})
			return w.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"))
		},
		"delete": func(w *world) error { return w.Delete(w.ctx, configMap("gone")) },
	}
	for name, write := range writes {
		for contentType, body := range map[string]string{
			"text/html": "<html>log in</html>", "application/json": `{"kind":"ConfigMap","metadata":{"na`,
			"application/yaml": "kind: ConfigMap", "application/vnd.kubernetes.protobuf": "k8s\x00", "text/plain": "",
		} {
			t.Run(fmt.Sprint(name, " ", contentType), func(t *testing.T) {
				answers := &unreadable{}
				setup{wrap: func(next http.RoundTripper) http.RoundTripper {
					answers.RoundTripper = next
					return answers
				}}.run(t, func(w *world) {
					w.warm(&corev1.ConfigMapList{})
					w.set(func() { w.lag = time.Second })
					answers.contentType, answers.body = contentType, body
					if err := write(w); err == nil || !strings.Contains(err.Error(), "decode response: ") {
						t.Errorf("%v", err)
					}
					synctest.Wait()
					if name == "delete" {
						err := w.Get(w.ctx, keyOf(configMap("gone")), &corev1.ConfigMap{})
						if !apierrors.IsNotFound(err) {
							t.Errorf("get: %v", err)
						}
						return
					}
					want := map[bool]string{true: "new", false: "old"}[name == "create"]
					w.wantNames(want, client.MatchingLabels{"is": "there"})
				}, configMap("old"), configMap("gone"))
			})
		}
	}
}

// TestUnreadableList: an answer that is no list does not show that the object of a lost write is gone.
func TestUnreadableList(t *testing.T) {
	for _, body := range []string{`{}`, `{"kind":"Status","status":"Success"}`, `"ok"`} {
		behindProxy := true
		setup{wrap: func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				asks := r.Method == http.MethodPut || r.URL.Query().Has("fieldSelector")
				if err != nil || !asks || !behindProxy {
					return response, err
				}
				_ = response.Body.Close()
				response.Header.Set("Content-Type", "application/json")
				response.ContentLength, response.Body = -1, io.NopCloser(strings.NewReader(body))
				return response, nil
			})
		}}.run(t, func(w *world) {
			w.warm(&corev1.ConfigMapList{})
			err := w.Update(w.ctx, configMap("a", "v", "2"))
			if status := strings.Contains(body, "Status"); status != (err == nil) {
				t.Errorf("%s: the update returned %v", body, err)
			}
			var got corev1.ConfigMap
			if err := w.Get(w.ctx, keyOf(configMap("a")), &got); apierrors.IsNotFound(err) || err == nil {
				t.Errorf("%s: while nobody can tell, a read returns %v", body, err)
			}
			behindProxy = false
			time.Sleep(time.Minute)
			w.must(w.Get(w.ctx, keyOf(configMap("a")), &got))
			if got.Labels["v"] != "2" {
				t.Errorf("%s: labels %v after the update", body, got.Labels)
			}
		}, configMap("a", "v", "1"))
	}
}

// TestNotFoundOfAnotherServer: a deletion is answered 404 by something in front of the server, or because the server
// does not serve the API version any more. The object is still there, and reads go on finding it.
func TestNotFoundOfAnotherServer(t *testing.T) {
	for contentType, body := range map[string]string{
		"text/html": "<html>default backend - 404</html>",
		"application/json": `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
			`"message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`,
	} {
		setup{wrap: func(next http.RoundTripper) http.RoundTripper {
			return tripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodDelete {
					return next.RoundTrip(r)
				}
				return &http.Response{
					StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {contentType}}, Request: r,
					Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1,
				}, nil
			})
		}}.run(t, func(w *world) {
			w.warm(&corev1.ConfigMapList{})
			if err := w.Delete(w.ctx, configMap("a")); !apierrors.IsNotFound(err) {
				t.Errorf("delete: %v", err)
			}
			w.must(w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
			w.wantNames("a")
		}, configMap("a"))
	}
}
