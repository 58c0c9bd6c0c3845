package ownwrites

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// Only what is written to objects of the server itself is noted.
func TestWhatIsNoted(t *testing.T) {
	const answer = `{"kind":"X","metadata":{"name":"n","uid":"u","resourceVersion":"7"}}`
	for url, want := range map[string]string{
		"https://a/base/api/v1/namespaces/default/configmaps/n":            "configmaps default/n 7",
		"https://a/base/api/v1/namespaces/default/configmaps":              "configmaps default/n 7", // created
		"https://a/base/api/v1/namespaces/n/finalize":                      "namespaces /n 7",
		"https://a/base/apis/apps/v1/namespaces/default/deployments/n":     "deployments.apps default/n 7",
		"https://a/base/api/v1/namespaces/default/configmaps/api":          "configmaps default/api 7",
		"https://a/base/api/v1/namespaces/default/pods/n/status":           "pods default/n 7",
		"https://a/base/api/v1/namespaces/default/pods/n/proxy/api/v1":     "",
		"https://b/base/api/v1/namespaces/default/configmaps/n":            "", // another server
		"https://a/api/v1/namespaces/default/configmaps/n":                 "", // and another
		"https://a/base/apis/g/v1/projects/p/control-plane/api/v1/x/n":     "", // and one behind a path of this one
		"https://a/base/api/v1/namespaces/default/configmaps/n?dryRun=All": "",
	} {
		w, err := New(&rest.Config{Host: "https://a/base/"})
		if err != nil {
			t.Fatal(err)
		}
		var b Books
		b.Add(w)
		to := w.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
		}))
		r, err := http.NewRequest(http.MethodPut, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := to.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != answer {
			t.Errorf("%s: the client reads %q, %v", url, body, err)
		}
		got := ""
		for _, u := range w.snapshot() {
			got = u.Resource.String() + " " + u.Namespace + "/" + u.Name + " " + u.ResourceVersion
		}
		if got != want {
			t.Errorf("%s: noted %q, want %q", url, got, want)
		}
		count := b.Count()
		b.Remove(w)
		if b.Count() != count || len(w.snapshot()) != 0 || w.active.Load() {
			t.Errorf("%s: removed, %d counted of %d, %d objects", url, b.Count(), count, len(w.snapshot()))
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that says nothing is asked once what became of a write, for a while; one that is away is not waited for.
func TestAServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, away := 0, false
		config := &rest.Config{Host: "https://a", QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			asked++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		caches, err := informer.NewFactory(config, informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		w.Connect(Peer{
			Caches: caches, Timeout: time.Second, Away: func() bool { return away },
			Client: func() (rest.Interface, error) { return c.CoreV1().RESTClient(), nil },
		})
		var b Books
		b.Add(w)
		written, _ := writtenAt("/api/v1/namespaces/default/pods/n")
		w.note(http.MethodPost, "/api/v1/namespaces/default/pods/n/binding", written, identified{})
		away = true
		if b.Behind(t.Context()) || asked != 0 {
			t.Errorf("away, and waited for; asked %d times", asked)
		}
		away = false
		began := time.Now()
		for range 3 {
			b.Behind(t.Context())
		}
		if took := time.Since(began); asked != 1 || took != time.Second {
			t.Errorf("asked %d times, for %v", asked, took)
		}
		w.peer.Client = func() (rest.Interface, error) { return nil, errors.New("no client") }
		w.note(http.MethodPost, "/api/v1/namespaces/default/pods/n/binding", written, identified{})
		if !b.Behind(context.Background()) || len(b.GiveUp()) != 1 || b.Behind(t.Context()) {
			t.Error("what cannot be found out is not given up")
		}
	})
}
