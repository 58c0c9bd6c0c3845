package writes

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// behindAll is a cache that shows nothing.
type behindAll struct{}

func (behindAll) Namespaces() []string                                 { return nil }
func (behindAll) Get(types.NamespacedName) (informer.Object, bool)     { return nil, false }
func (behindAll) Watermark(string) string                              { return "1" }
func (behindAll) History(string) int64                                 { return 0 }
func (behindAll) WaitForVersion(context.Context, string, string) error { return nil }

// noted returns the entries of the record that a cache does not show: "resource namespace/name version".
func noted(r *Record) (all []string) {
	for _, l := range r.allResources() {
		for _, e := range l.order {
			all = append(all, l.Name.String()+" "+e.Key.String()+" "+e.Version)
		}
	}
	return all
}

// Only writes to objects of the server itself are noted.
func TestWhatIsNoted(t *testing.T) {
	for url, object := range map[string]string{
		"https://a/base/api/v1/namespaces/default/configmaps/n":            "configmaps default/n 7",
		"https://a/base/api/v1/namespaces/default/configmaps":              "configmaps default/n 7", // created
		"https://a/base/api/v1/namespaces/n/finalize":                      "namespaces /n 7",
		"https://a/base/apis/apps/v1/namespaces/default/deployments/n":     "deployments.apps default/n 7",
		"https://a/base/api/v1/namespaces/default/configmaps/api":          "configmaps default/api 7",
		"https://a/base/api/v1/namespaces/default/pods/n/status":           "pods default/n 7",
		"https://a/base/api/v1/namespaces/default/pods/n/proxy/api/v1":     "",
		"https://b/base/api/v1/namespaces/default/configmaps/n":            "", // another server
		"https://a/api/v1/namespaces/default/configmaps/n":                 "", // and another
		"https://a/base/apis/g/v1/projects/p/control-plane/api/v1/x/n":     "", // and one behind a path of this server
		"https://a/base/api/v1/namespaces/default/configmaps/n?dryRun=All": "",
	} {
		r, err := New(&rest.Config{Host: "https://a/base/"})
		if err != nil {
			t.Fatal(err)
		}
		metadata := `{"name":"n","uid":"u","resourceVersion":"7"}`
		if resource, rest, ok := strings.Cut(object, " "); ok {
			namespace, name, _ := strings.Cut(strings.Fields(rest)[0], "/")
			metadata = `{"namespace":"` + namespace + `","name":"` + name + `","uid":"u","resourceVersion":"7"}`
			resource, group, _ := strings.Cut(resource, ".")
			r.Resource(schema.GroupResource{Group: group, Resource: resource}).Join(behindAll{})
		}
		answer := `{"kind":"X","apiVersion":"v1","metadata":` + metadata + `}`
		r.awaited.Store(true)
		to := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(answer)),
			}, nil
		}))
		request, err := http.NewRequest(http.MethodPut, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := to.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != answer {
			t.Errorf("%s: the client reads %q, %v", url, body, err)
		}
		if got := strings.Join(noted(r), ", "); got != object {
			t.Errorf("%s: noted %q, want %q", url, got, object)
		}
	}
}

// upTo is a cache that is complete up to a version.
type upTo struct {
	behindAll
	version string
}

func (c upTo) Watermark(string) string { return c.version }

// Two caches of one kind, as of objects and of their metadata, are not equally fast. A reader of the one that shows
// the effect of a deletion of many does not wait for the other. It would spin: the wait for its own cache is over.
func TestReadersWaitForTheirOwnCache(t *testing.T) {
	r, err := New(&rest.Config{Host: "https://a"})
	if err != nil {
		t.Fatal(err)
	}
	maps, slow, fast := r.Resource(schema.GroupResource{Resource: "configmaps"}), upTo{version: "4"}, upTo{version: "5"}
	maps.Join(slow)
	maps.Join(fast)
	to := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)),
		}, nil
	}))
	const url = "https://a/api/v1/namespaces/default/configmaps"
	request, err := http.NewRequest(http.MethodDelete, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := to.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	waits := func(c Cache) int {
		_, inDoubt, _ := maps.Unreached(c, types.NamespacedName{Namespace: "default"})
		return len(inDoubt)
	}
	if waits(slow) != 1 || waits(fast) != 1 {
		t.Error("a reader does not wait, and the server has not been asked")
	}
	for w := range maps.inDoubt {
		w.shownBy("5", 0, time.Now())
	}
	if waits(slow) != 1 || waits(fast) != 0 {
		t.Errorf("the server's list is of version 5: in doubt are %d for a reader at 4, want 1; %d at 5, want 0",
			waits(slow), waits(fast))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that does not answer is asked once about a write. A server that is away is not waited for.
func TestAServerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, away := 0, false
		config := &rest.Config{
			Host: "https://a", QPS: -1,
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet {
					asked++
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				const status = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
				return &http.Response{
					StatusCode: 201, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(status)),
				}, nil
			}),
		}
		r, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		config.Wrap(r.Wrap)
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		caches, err := informer.NewFactory(config, informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		server := c.CoreV1().RESTClient()
		r.Connect(caches, server, 0)
		r.AskWithin(time.Second, func() bool { return away })
		var all Awaited
		all.Add(r)
		pods := r.Resource(schema.GroupResource{Resource: "pods"})
		bind := func() {
			if err := server.Post().AbsPath("/api/v1/namespaces/default/pods/n/binding").Body([]byte("{}")).Do(
				t.Context(),
			).Error(); err != nil {
				t.Fatal(err)
			}
		}
		bind()
		away = true
		if all.Behind(t.Context()) || asked != 0 {
			t.Errorf("away, and waited for; asked %d times", asked)
		}
		away = false
		began := time.Now()
		for range 3 {
			if !all.Behind(t.Context()) {
				t.Error("not waited for")
			}
		}
		if took := time.Since(began); asked != 1 || took != time.Second {
			t.Errorf("asked %d times, for %v", asked, took)
		}
		if len(pods.giveUp()) != 1 || all.Behind(t.Context()) {
			t.Error("what the server does not say is not given up")
		}
		mute := *r.peer.Load()
		mute.server = nil
		r.peer.Store(&mute)
		bind()
		if !all.Behind(context.Background()) || len(pods.giveUp()) != 1 || all.Behind(t.Context()) {
			t.Error("what cannot be found out is not given up")
		}
	})
}

// A write that was refused, or never reached the server, is not in doubt. After a server error or a lost answer it is
// in doubt, and its name is known.
func TestInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		body    string
		err     error
		inDoubt bool
	}{
		"refused": {code: 409, body: "{}"},
		"webhook": {code: 500, body: `{"kind":"Status","message":"failed calling webhook \"a.b.c\""}`},
		"denied": {code: 504, body: `{"kind":"Status",` +
			`"message":"admission webhook \"a.b.c\" denied the request: no"}`},
		"quota": {code: 500, body: `{"kind":"Status","reason":"InternalError",` +
			`"message":"Internal error occurred: resource quota evaluation timed out"}`},
		"server error":   {code: 500, body: "{}", inDoubt: true},
		"internal error": {code: 500, body: `{"kind":"Status","reason":"InternalError"}`, inDoubt: true},
		"lost":           {err: io.ErrUnexpectedEOF, inDoubt: true},
		"not sent":       {err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		"not trusted":    {err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}},
	} {
		r, err := New(&rest.Config{Host: "https://a"})
		if err != nil {
			t.Fatal(err)
		}
		to := r.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
			if c.err != nil {
				return nil, c.err
			}
			return &http.Response{
				StatusCode: c.code, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(c.body)),
			}, nil
		}))
		body := strings.NewReader(`{"kind":"ConfigMap","metadata":{"name":"n"}}`)
		request, err := http.NewRequest(http.MethodPost, "https://a/api/v1/namespaces/default/configmaps", body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.RoundTrip(request); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		stale := (*StaleError)(nil)
		if errors.As(r.firstStale(nil, true), &stale) != c.inDoubt ||
			stale != nil && (stale.Key.Name != "n" || stale.Cause == nil) {
			t.Errorf("%s: %+v, want in doubt: %v", name, stale, c.inDoubt)
		}
	}
}
