package discovered

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/wire"
)

// apps answers each request for the resources of apps/v1 after a second.
type apps struct {
	asked   atomic.Int32
	failure atomic.Pointer[error]
}

func (a *apps) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked.Add(1)
	if r.Body != nil {
		defer r.Body.Close()
	}
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	if failure := a.failure.Load(); failure != nil {
		return nil, *failure
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(
			`{"kind":"APIResourceList","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment"},` +
				`{"name":"deployments/status","namespaced":true,"kind":"Deployment"}]}`,
		)),
	}, nil
}

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	unknown     = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Unknown"}
)

func resourcesOf(t *testing.T, transport http.RoundTripper) *Resources {
	t.Helper()
	client, err := rest.RESTClientFor(&rest.Config{
		Host: "http://localhost", QPS: -1, Transport: transport,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: wire.ErrorCodecs(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return NewResources(client, nil)
}

// atOnce calls Of from n goroutines at the same time and passes each result to check.
func atOnce(
	t *testing.T, n int, m *Resources, kind schema.GroupVersionKind, check func(r Resource, err error),
) {
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() { check(m.Of(t.Context(), kind)) })
	}
	callers.Wait()
}

// TestResourcesAreAskedForOnce: many callers at the same time cause one request.
func TestResourcesAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apps{}
		m := resourcesOf(t, server)
		atOnce(t, 8, m, deployments, func(r Resource, err error) {
			if err != nil || r.GroupVersionResource.Resource != "deployments" || !r.Namespaced {
				t.Errorf("%v, %v", r, err)
			}
		})
		if _, err := m.Of(t.Context(), deployments); err != nil {
			t.Error(err)
		}
		if n := server.asked.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		atOnce(t, 8, m, unknown, func(r Resource, err error) {
			if err == nil {
				t.Errorf("a kind that does not exist has the resource %v", r)
			}
		})
		if n := server.asked.Load(); n != 3 {
			t.Errorf("%d requests with those for an unknown kind", n)
		}
	})
}

// TestWaitingCallersAskThemselves ends the context of the caller whose request the others wait for, and that of a
// waiting caller.
func TestWaitingCallersAskThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apps{}
		m := resourcesOf(t, server)
		first, stop := context.WithCancel(t.Context())
		second, impatient := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer impatient()
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := m.Of(first, deployments); !errors.Is(err, context.Canceled) {
				t.Errorf("the first caller: %v", err)
			}
		})
		synctest.Wait()
		callers.Go(func() {
			if _, err := m.Of(second, deployments); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the impatient caller: %v", err)
			}
		})
		callers.Go(func() {
			if r, err := m.Of(t.Context(), deployments); err != nil || !r.Namespaced {
				t.Errorf("the last caller: %v, %v", r, err)
			}
		})
		time.Sleep(500 * time.Millisecond)
		stop()
		callers.Wait()
		if n := server.asked.Load(); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestFailuresOfDiscoveryAreShared: the server refuses, and then does not answer in time. Waiting callers get the error
// of the first or the second request, and the next caller asks again.
func TestFailuresOfDiscoveryAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apps{}
		m := resourcesOf(t, server)
		for _, failure := range []error{errors.New("refused"), context.DeadlineExceeded} {
			server.failure.Store(&failure)
			before := server.asked.Load()
			atOnce(t, 40, m, deployments, func(_ Resource, err error) {
				if !errors.Is(err, failure) {
					t.Errorf("%v: %v", failure, err)
				}
			})
			if n := server.asked.Load() - before; n != 2 {
				t.Errorf("%v: %d requests", failure, n)
			}
		}
		server.failure.Store(nil)
		if _, err := m.Of(t.Context(), deployments); err != nil {
			t.Error(err)
		}
	})
}
