package localapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// TestUnreadStreamsEnd has a client that opens a watch, reads nothing and never closes the body, while the server has
// more to send than it may send ahead.
func TestUnreadStreamsEnd(t *testing.T) {
	for _, how := range []string{"cancel", "close"} {
		inBubble(t, localapi.Options{}, func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response := send(t, s.RESTConfig(), request{ctx: ctx, path: "/api/v1/configmaps?watch=true"})
			_ = response // nobody closes its body
			maps := client.CoreV1().ConfigMaps("default")
			for i := range 20 {
				mustCreate(t, maps, configMap(fmt.Sprintf("m%d", i), "big", string(make([]byte, 10_000))))
			}
			synctest.Wait()
			if how == "cancel" {
				cancel()
			}
			if err := s.Close(); err != nil { // waits for the watch: the bubble would report a deadlock
				t.Errorf("close: %v", err)
			}
		})
	}
}

func TestCloseReleasesWhatTheGateHolds(t *testing.T) {
	hold := gate.Funcs{OnRequest: func(ctx context.Context, r *gate.Request) gate.Verdict {
		if r.Verb == "list" {
			<-ctx.Done()
			return gate.Verdict{Action: gate.Drop}
		}
		return gate.Verdict{}
	}}
	inBubble(t, localapi.Options{Gate: hold}, func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
		failed := make(chan error, 1)
		go func() {
			_, err := client.CoreV1().ConfigMaps("").List(context.Background(), metav1.ListOptions{})
			failed <- err
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-failed; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("held list ended with %v, want a broken connection", err)
		}
	})
}

func TestRequestsAfterCloseAreRefused(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	response, err := config.Transport.RoundTrip(newRequest(t, t.Context(), config, request{path: "/api/v1/nodes"}))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			_ = response.Body.Close()
		}
		t.Errorf("request after close: %v, want a refused connection", err)
	}
}

// TestEverySpellingOfAWatchStreams: a request that is answered by the client's own goroutine must not be one that
// never ends.
func TestEverySpellingOfAWatchStreams(t *testing.T) {
	for _, path := range []string{
		"/api/v1/configmaps?watch=true", "/api/v1/configmaps?watch", "/api/v1/configmaps?w%61tch=1",
		"/api/v1/watch/configmaps", "/api/v1/watch/namespaces/default/configmaps", "/api/v1/w%61tch/configmaps",
	} {
		inBubble(t, localapi.Options{}, func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
			response := send(t, s.RESTConfig(), request{path: path})
			mustCreate(t, client.CoreV1().ConfigMaps("default"), configMap("m"))
			first := make([]byte, 16)
			if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != `{"type":"ADDED",` {
				t.Errorf("%s begins with %q, %v", path, first, err)
			}
		})
	}
}
