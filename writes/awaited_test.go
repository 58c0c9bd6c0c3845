package writes

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// A record is waited for until it is removed. Its writes count even after that.
func TestAddAndRemove(t *testing.T) {
	config := &rest.Config{Host: "https://a"}
	r, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	caches, err := informer.NewFactory(config, informer.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.For[*corev1.ConfigMap](caches); err != nil { // it is not run, so it never shows the write
		t.Fatal(err)
	}
	r.Connect(caches, nil, 0)
	var w Awaited
	w.Add(r)
	transport := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		if !w.Moving() {
			t.Error("no write is under way")
		}
		const answer = `{"kind":"ConfigMap","apiVersion":"v1","metadata":` +
			`{"namespace":"default","name":"n","uid":"u","resourceVersion":"7"}}`
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(answer)),
		}, nil
	}))
	request, err := http.NewRequest(http.MethodPut, "https://a/api/v1/namespaces/default/configmaps/n", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	if w.Moving() || w.Count() != 2 || !w.Behind(t.Context()) {
		t.Errorf("after the write: moving %v, count %d, behind %v", w.Moving(), w.Count(), w.Behind(t.Context()))
	}
	w.Remove(r)
	w.Remove(r)
	maps := r.Resource(corev1.Resource("configmaps"))
	if w.Count() != 2 || w.Behind(t.Context()) || maps.behind(t.Context()) {
		t.Errorf("after Remove: count %d, behind %v", w.Count(), w.Behind(t.Context()))
	}
}
