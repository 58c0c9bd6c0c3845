package localapi_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/localapi"
)

// overTLS is a client that speaks HTTP/2 to a server in the same bubble.
type overTLS struct {
	http.Client
	dials atomic.Int64
	stop  context.CancelFunc // ends the server
}

func newOverTLS(t *testing.T, server *localapi.Server) *overTLS {
	t.Helper()
	l, ca := newPipes(), newAuthority(t)
	c := &overTLS{}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool()},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			c.dials.Add(1)
			return l.dial(t, ""), nil
		},
	}
	c.Transport = transport
	t.Cleanup(transport.CloseIdleConnections)
	config := &tls.Config{Certificates: []tls.Certificate{ca.server()}}
	c.stop = inBackground(t, func(ctx context.Context) error { return server.ServeTLS(ctx, l, config) })
	return c
}

// send asks for path, and fails the test without an answer.
func (c *overTLS) send(t *testing.T, method, path string, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

const configMaps = "/api/v1/namespaces/default/configmaps"

// TestHTTP2: over TLS all of a client's requests share one connection, a watch outlives the limits of other requests,
// and the end of the server ends it at once.
func TestHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := start(t, localapi.Options{})
		client := newOverTLS(t, server)
		var watches []*bufio.Reader
		for range 20 {
			answer := client.send(t, "GET", configMaps+"?watch=true", nil)
			if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 {
				t.Fatalf("%s %s", answer.Proto, answer.Status)
			}
			watches = append(watches, bufio.NewReader(answer.Body))
		}
		time.Sleep(24 * time.Hour)
		created := client.send(t, "POST", configMaps, strings.NewReader(`{"metadata":{"name":"late"}}`))
		if created.StatusCode != http.StatusCreated {
			t.Fatal(created.Status)
		}
		for _, w := range watches {
			if line, err := w.ReadString('\n'); err != nil || !strings.Contains(line, `"late"`) {
				t.Errorf("after a day: %q, %v", line, err)
			}
		}
		if n := client.dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		before := time.Now()
		client.stop()
		for _, w := range watches {
			if rest, err := io.ReadAll(w); len(rest) > 0 {
				t.Errorf("after the end: %q, %v", rest, err)
			}
		}
		if lasts := time.Since(before); lasts > time.Second {
			t.Errorf("the watches lasted %v", lasts)
		}
	})
}

// TestSlowHTTP2Clients: half a body is waited for no longer than over HTTP/1.1, and an answer that is not taken is
// given up. The connection stays for the other requests.
func TestSlowHTTP2Clients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, config := start(t, localapi.Options{})
		large := configMap("large")
		large.Data = map[string]string{"text": strings.Repeat("a", 500_000)}
		maps := clientset(t, config).CoreV1().ConfigMaps("default")
		for i := range 20 { // more than a connection takes in advance
			large.Name = fmt.Sprint("large", i)
			mustCreate(t, maps, large)
		}
		client := newOverTLS(t, server)

		began := time.Now()
		half, rest := io.Pipe()
		go func() { _, _ = io.WriteString(rest, `{"metadata":`) }()
		answer := client.send(t, "POST", configMaps, half)
		if lasts := time.Since(began); answer.StatusCode != http.StatusRequestTimeout || lasts != 30*time.Second {
			t.Errorf("half a body: %s after %v", answer.Status, lasts)
		}
		_ = rest.Close()

		unread := client.send(t, "GET", configMaps, nil)
		time.Sleep(90 * time.Second)
		if text, err := io.ReadAll(unread.Body); err == nil {
			t.Errorf("still sent after 90 seconds: %d bytes", len(text))
		}
		if live := client.send(t, "GET", "/livez", nil); live.StatusCode != http.StatusOK || client.dials.Load() != 1 {
			t.Errorf("afterwards: %s, %d connections", live.Status, client.dials.Load())
		}
	})
}
