package multicluster_test

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
)

// listen opens a port and answers no connection.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// answers starts a server and returns its config.
func answers(t *testing.T, f http.HandlerFunc, start func(*httptest.Server)) *rest.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(f)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

// with returns a handler that answers with a status.
func with(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

const mayNotList = `configmaps is forbidden: User "fleet" cannot list resource "configmaps" in API group "" at the cluster scope`

// powerless is a server that allows only discovery.
func powerless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any = struct{}{}
	switch r.URL.Path {
	case "/version":
	case "/api/v1":
		answer = metav1.APIResourceList{
			GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: []string{"list", "watch"}},
			},
		}
	default:
		w.WriteHeader(http.StatusForbidden)
		answer = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: mayNotList,
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// With servers that do not work, over sockets, the status of each cluster describes the problem in words.
func TestStatusDescribesErrors(t *testing.T) {
	o := multicluster.Options{
		JoinTimeout: 5 * time.Second,
		JoinBackoff: informer.Backoff{Min: 10 * time.Millisecond, Max: 20 * time.Millisecond},
	}
	w := newWorld(t, o, manager.Options{})
	w.complete(t, &recorder{})
	w.start(t)
	gone := listen(t)
	_ = gone.Close()
	for _, c := range []struct {
		name   string
		config *rest.Config
		state  multicluster.State
		says   string
	}{
		{
			"accepts-and-hangs", &rest.Config{Host: "https://" + listen(t).Addr().String()}, multicluster.Joining,
			"does not answer in time",
		},
		{
			"nobody-listens", &rest.Config{Host: "http://" + gone.Addr().String()}, multicluster.Joining,
			"connection refused",
		},
		{
			"not-trusted", answers(t, with(200), (*httptest.Server).StartTLS), multicluster.Joining,
			"certificate signed by unknown authority",
		},
		{
			"unavailable", answers(t, with(503), (*httptest.Server).Start), multicluster.Joining,
			"answers 503 Service Unavailable",
		},
		{
			"unknown-to-it", answers(t, with(401), (*httptest.Server).Start), multicluster.Joining,
			"answers 401 Unauthorized",
		},
		{
			"powerless", answers(t, powerless, (*httptest.Server).Start), multicluster.Live,
			`forbidden: User "fleet" cannot list resource "configmaps"`,
		},
		{
			"no-api", answers(t, with(404), (*httptest.Server).Start), multicluster.Live,
			"the server has no kind ConfigMap in v1",
		},
	} {
		if err := w.fleet.Join(multicluster.Announcement{Name: c.name, Config: c.config}); err != nil {
			t.Fatal(err)
		}
		defer w.waitForState(t, c.name, c.state, c.says) // when all have been announced
	}
}
