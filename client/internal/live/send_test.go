package live

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/flowcontrol"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func answer(r *http.Request, code int, body string, header http.Header) *http.Response {
	return &http.Response{
		StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r, ContentLength: -1,
	}
}

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// mapper knows Deployments.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(deployments, meta.RESTScopeNamespace)
	return m
}

// serverOf returns a server of config that knows Deployments.
func serverOf(t *testing.T, config *rest.Config) *Server {
	s, err := New(config, clientscheme.Scheme, mapper(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get() Request {
	return Request{Verb: "GET", GVK: deployments, Key: types.NamespacedName{Namespace: "default", Name: "web"}}
}

// noted is a warning handler and a rate limiter that writes down its calls.
type noted struct {
	flowcontrol.RateLimiter
	calls []string
}

func (n *noted) HandleWarningHeader(_ int, _, text string) {
	n.calls = append(n.calls, "warned: "+text)
}

func (n *noted) Wait(context.Context) error { n.calls = append(n.calls, "waited"); return nil }

func (n *noted) Increment(_ context.Context, code, method, host string) {
	n.calls = append(n.calls, "counted: "+code+" "+method+" "+host)
}

// TestConfigIsHonoured: requests wait for the config's rate limiter, warnings go to its handler, results are counted in
// client-go's metrics, and a redirect on the same host is followed.
func TestConfigIsHonoured(t *testing.T) {
	n := &noted{}
	defer func(before metrics.ResultMetric) { metrics.RequestResult = before }(metrics.RequestResult)
	metrics.RequestResult = n
	s := serverOf(t, &rest.Config{
		Host: "https://localhost", RateLimiter: n, WarningHandler: n, UserAgent: "me/1",
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			n.calls = append(n.calls, "sent: "+r.URL.Path+" "+r.UserAgent()+" "+r.Header.Get("Accept"))
			if r.URL.Path != "/new" {
				return answer(r, http.StatusTemporaryRedirect, "", http.Header{"Location": {"/new"}}), nil
			}
			return answer(r, http.StatusOK, "{}", http.Header{"Warning": {`299 - "old API"`}}), nil
		}),
	})
	media, body, err := s.Send(t.Context(), get())
	if err != nil || media != "application/json" || string(body) != "{}" {
		t.Errorf("got %q %q, %v", media, body, err)
	}
	const path = "sent: /apis/apps/v1/namespaces/default/deployments/web me/1 application/json"
	want := []string{
		"waited", path, path, "sent: /new me/1 application/json", "counted: 200 GET localhost", "warned: old API",
	}
	if !slices.Equal(n.calls, want) {
		t.Errorf("got  %q\nwant %q", n.calls, want)
	}
}

// TestTimeout: the config's timeout ends a request, and the server is told.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var query string
		s := serverOf(t, &rest.Config{
			Host: "https://localhost", QPS: -1, Timeout: time.Second,
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				query = r.URL.RawQuery
				<-r.Context().Done()
				return nil, r.Context().Err()
			}),
		})
		begun := time.Now()
		_, _, err := s.Send(t.Context(), get())
		const want = `Get "https://localhost/apis/apps/v1/namespaces/default/deployments/web?timeout=1s": ` +
			`context deadline exceeded`
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != want || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v, want %s", time.Since(begun), err, want)
		}
		if query != "timeout=1s" {
			t.Errorf("the query is %q", query)
		}
	})
}

// TestBrokenAnswer: an answer that breaks off is an error, not a shorter answer.
func TestBrokenAnswer(t *testing.T) {
	for _, length := range []int64{-1, 10} {
		s := serverOf(t, &rest.Config{
			Host: "https://localhost", QPS: -1,
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				response := answer(r, http.StatusOK, "", nil)
				response.ContentLength = length
				response.Body = io.NopCloser(io.MultiReader(strings.NewReader("{}"), &broken{}))
				return response, nil
			}),
		})
		if _, body, err := s.Send(t.Context(), get()); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("got %q, %v", body, err)
		}
	}
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestRequestsAllocateLittle: what a request allocates besides the transport and the answer.
func TestRequestsAllocateLittle(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}}
	s := serverOf(t, &rest.Config{
		Host: "https://localhost", QPS: -1,
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody, Request: r}, nil
		}),
	})
	got := testing.AllocsPerRun(100, func() {
		if _, _, err := s.Send(t.Context(), get()); err != nil {
			t.Fatal(err)
		}
	})
	if got > 12 { // With rest.Request 72.
		t.Errorf("%v allocations", got)
	}
}
