package localapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// inBackground calls serve in a goroutine. The end of the test cancels its context, as stop does, and waits for it.
func inBackground(t *testing.T, serve func(context.Context) error) (stop context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return stop
}

// serving has a server listen for the time of a test, and returns its address.
func serving(t *testing.T, server *localapi.Server, l net.Listener) string {
	t.Helper()
	inBackground(t, func(ctx context.Context) error { return server.Serve(ctx, l) })
	return l.Addr().String()
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := localapi.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// askSocket sends a request to a socket and returns the answer's code and text.
func askSocket(t *testing.T, method, url, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	change(r)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestWebPages: what a browser may send for a page of elsewhere is refused, and changes nothing.
func TestWebPages(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{AllowedHosts: []string{"api.test"}})
	addr := serving(t, server.Server, loopback(t))
	_, port, _ := net.SplitHostPort(addr)
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		read   int // the codes of a read and of a create
		create int
	}{
		{"nothing special", header("Content-Type", "application/json"), 200, 201},
		{"a page whose name was made to stand for this machine", host("page.example:" + port), 403, 403},
		{"another address", host("127.0.0.2:" + port), 403, 403},
		{"no address", host("0.0.0.0:" + port), 403, 403},
		{"another page of this machine", header("Origin", "http://127.0.0.1:1"), 403, 403},
		{"an https page", header("Origin", "https://"+addr), 403, 403},
		{"a page without an origin", header("Origin", "null"), 403, 403},
		{"a script without a type", header("Accept", "*/*"), 200, 415},
		{"a form", header("Content-Type", "application/x-www-form-urlencoded"), 200, 415},
		{"a form with files", header("Content-Type", "multipart/form-data; boundary=x"), 200, 415},
		{"a form of text", header("Content-Type", "text/plain"), 200, 415},
	} {
		if code, text := askSocket(t, "GET", "http://"+addr+"/api/v1/namespaces", "", c.change); code != c.read {
			t.Errorf("%s: get: %d %s, want %d", c.name, code, text, c.read)
		}
		code, text := askSocket(t, "POST", "http://"+addr+"/api/v1/namespaces/default/configmaps",
			`{"metadata":{"generateName":"a-"}}`, c.change)
		if code != c.create || code > 400 && statusOf(t, text).Code != int32(code) {
			t.Errorf("%s: create: %d %s, want %d", c.name, code, text, c.create)
		}
	}
	written := func() int {
		maps := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().ConfigMaps("default")
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if n := written(); n != 1 {
		t.Errorf("%d config maps, want that of the first request only", n)
	}
	for name, change := range map[string]func(*http.Request){
		"localhost": host("localhost:1"), "the same": host("LOCALHOST."), "an allowed name": host("API.test"),
		"a page of this server": header("Origin", "http://"+addr),
		"kubectl create --raw":  header("Authorization", "Bearer x"),
	} {
		code, text := askSocket(t, "POST", "http://"+addr+"/api/v1/namespaces/default/configmaps",
			`{"metadata":{"generateName":"a-"}}`, func(r *http.Request) {
				if change(r); r.Header.Get("Authorization") == "" {
					r.Header.Set("Content-Type", "application/json")
				}
			})
		if code != 201 {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

// TestUsersMustBeKnown: with tokens and no roles, somebody without one may read health and version, and nothing else.
// In this process nobody is asked.
func TestUsersMustBeKnown(t *testing.T) {
	server, config := start(t, localapi.Options{Tokens: map[string]auth.User{"secret": auth.Admin()}})
	addr := serving(t, server, loopback(t))
	for _, c := range []struct {
		method, path, authorization string
		want                        int
	}{
		{"GET", "/api/v1/namespaces", "", 401},
		{"GET", "/api/v1/namespaces?watch=true&timeoutSeconds=1", "", 401},
		{"GET", "/api", "", 401},
		{"GET", "/", "", 401},
		{"GET", "/openapi/v3", "", 401},
		{"GET", "/nonsense", "", 401},
		{"POST", "/api/v1/namespaces/default/configmaps", "", 401},
		{"DELETE", "/api/v1/namespaces/default", "", 401},
		{"GET", "/api/v1/namespaces", "Bearer guess", 401},
		{"GET", "/livez", "Bearer guess", 401},
		{"GET", "/api/v1/namespaces", "Basic secret", 401},
		{"GET", "/api/v1/namespaces", "Bearer secret", 200},
		{"GET", "/livez", "", 200},
		{"GET", "/readyz", "", 200},
		{"GET", "/healthz", "", 200},
		{"GET", "/version", "", 200},
		{"POST", "/version", "", 401},
	} {
		code, text := askSocket(t, c.method, "http://"+addr+c.path, "{}", func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
		})
		if code != c.want || code == 401 && statusOf(t, text).Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("%s %s as %q: %d %s, want %d", c.method, c.path, c.authorization, code, text, c.want)
		}
	}
	if _, err := clientset(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("in this process: %v", err)
	}
}

// pipes is a listener without a network, so that its connections live in a bubble.
type pipes struct {
	connections chan net.Conn // the far ends; dial sends, Accept receives; closed by nobody
	closed      chan struct{} // closed by Close
}

func newPipes() *pipes { return &pipes{connections: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr {
	c, _ := net.Pipe()
	return c.LocalAddr()
}

// dial returns a connection on which text has been sent.
func (p *pipes) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	p.connections <- far
	if _, err := io.WriteString(near, text); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	return near
}

// dialed serves to a connection on which text has been sent.
func dialed(t *testing.T, server *localapi.Server, text string) net.Conn {
	t.Helper()
	l := newPipes()
	serving(t, server, l)
	return l.dial(t, text)
}

// end returns what is still read of a connection, and how long it then lasts.
func end(t *testing.T, r io.Reader) (text string, lasts time.Duration) {
	t.Helper()
	begin := time.Now()
	b, err := io.ReadAll(r)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read: %v", err)
	}
	return string(b), time.Since(begin)
}

const post = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
	"application/json\r\nContent-Length: 25\r\n\r\n"

// TestSlowClients: a connection on which nothing comes, or nothing is taken, is closed; a watch stays. Since Go 1.27
// net/http keeps a connection for half a second after it answered half a body, so that the client gets the answer.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	const get = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, c := range []struct {
		name, sent string
		answers    string // the beginning of what is answered
		within     time.Duration
	}{
		{"silence", "", "", 10 * time.Second},
		{"half a header", get[:20], "", 10 * time.Second},
		{"half a body", post + `{"metadata":`, "HTTP/1.1 408 Request Timeout\r\n", 30 * time.Second},
		{
			"half a body that nobody wants", strings.Replace(post, "/configmaps", "/nonsense", 1) + `{"metadata":`,
			"HTTP/1.1 404 Not Found\r\n", 30 * time.Second,
		},
		{"one request", get, "HTTP/1.1 200 OK\r\n", time.Minute},
		{"one write", post + `{"metadata":{"name":"a"}}`, "HTTP/1.1 201 Created\r\n", time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, _ := start(t, localapi.Options{})
				text, lasts := end(t, dialed(t, server, c.sent))
				if !strings.HasPrefix(text, c.answers) || lasts.Truncate(time.Second) != c.within {
					t.Errorf("after %v: %q", lasts, text)
				}
			})
		})
	}
}

// TestUnreadAnswer: an answer that its client does not take is given up.
func TestUnreadAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := start(t, localapi.Options{})
		c := dialed(t, server, "GET /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(2 * time.Minute)
		if text, _ := end(t, c); text != "" {
			t.Errorf("still sent after two minutes: %q", text)
		}
	})
}

// TestLongWatch: a watch outlives the limits of other requests, and what was sent with a body before it.
func TestLongWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, config := start(t, localapi.Options{})
		c := dialed(t, server,
			"GET /api/v1/namespaces/default/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		mustCreate(t, clientset(t, config).CoreV1().ConfigMaps("default"), configMap("late"))
		line, err := bufio.NewReader(response.Body).ReadString('\n')
		if err != nil || !strings.Contains(line, `"late"`) {
			t.Errorf("after a day: %q, %v", line, err)
		}
	})
}

// TestUnreadWatch: a watch whose client does not read an event for a minute ends, however long it was silent before.
// The same holds for a client that does not read the beginning.
func TestUnreadWatch(t *testing.T) {
	for name, read := range map[string]bool{"an event": true, "the beginning": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, config := start(t, localapi.Options{})
				c := dialed(t, server,
					"GET /api/v1/namespaces/default/configmaps?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
				if read {
					if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
				}
				mustCreate(t, clientset(t, config).CoreV1().ConfigMaps("default"), configMap("late"))
				time.Sleep(61 * time.Second)
				if text, _ := end(t, c); text != "" {
					t.Errorf("still sent: %q", text)
				}
			})
		})
	}
}

// TestSlowAnswer: once the body has come, its limit is over: work that takes longer goes on, and is answered.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut error
		g := gate.Funcs{OnAnswer: func(ctx context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			time.Sleep(45 * time.Second)
			cut = ctx.Err()
			return gate.Verdict{}
		}}
		server, _ := start(t, localapi.Options{Gate: g})
		c := dialed(t, server, post+`{"metadata":{"name":"a"}}`)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || cut != nil {
			t.Fatalf("%v, the request ended with %v", err, cut)
		}
		_ = response.Body.Close()
	})
}

// holding is a gate that holds each write up for five minutes, or until its client has left.
func holding(left *error) gate.Gate {
	return gate.Funcs{OnRequest: func(ctx context.Context, r *gate.Request) gate.Verdict {
		if !r.Mutates() {
			return gate.Verdict{}
		}
		select {
		case <-time.After(5 * time.Minute):
			return gate.Verdict{}
		case <-ctx.Done():
			*left = ctx.Err()
			return gate.Verdict{Action: gate.Drop}
		}
	}}
}

// TestHeldWrite: the limits of a connection are no limits of a gate.
func TestHeldWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left error
		server, _ := start(t, localapi.Options{Gate: holding(&left)})
		c := dialed(t, server, post+`{"metadata":{"name":"a"}}`)
		began := time.Now()
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		took := time.Since(began)
		if response.StatusCode != http.StatusCreated || took != 5*time.Minute || left != nil {
			t.Errorf("%s after %s, the request ended with %v", response.Status, took, left)
		}
	})
}

// TestHeldBodies: the bodies of held writes have 128 MiB together. A write beyond that is refused at once, and the next
// one is accepted when the others have gone on.
func TestHeldBodies(t *testing.T) {
	release, held := make(chan struct{}), atomic.Int64{}
	_, config := start(t, localapi.Options{Gate: gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if r.Verb == "create" {
				held.Add(1)
				<-release
			}
			return gate.Verdict{}
		},
	}})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	create := func(n int) error {
		large := configMap(fmt.Sprint("large", n), "k", strings.Repeat("x", 1<<20))
		_, err := maps.Create(t.Context(), large, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const room = 127 // of objects that are a bit larger than a mebibyte
	var writers sync.WaitGroup
	for n := range room {
		writers.Go(func() {
			if err := create(n); err != nil {
				t.Error(err)
			}
		})
	}
	for held.Load() < room && !t.Failed() {
		runtime.Gosched()
	}
	code, text := answer(t, config, request{
		method: "POST", path: configMaps, contentType: "application/json", body: strings.Repeat(" ", 2<<20),
	})
	if code != http.StatusTooManyRequests {
		t.Errorf("one write more: %d %s, want %d", code, text, http.StatusTooManyRequests)
	}
	close(release)
	writers.Wait()
	if err := create(room); err != nil {
		t.Errorf("after the others: %v", err)
	}
}

// TestGatesSeeWhoMayWrite: a write that is refused, because the user is unknown or may not do it, is not held up.
func TestGatesSeeWhoMayWrite(t *testing.T) {
	for _, rbac := range []bool{false, true} {
		server, _ := start(t, localapi.Options{
			RBAC: rbac, Tokens: map[string]auth.User{"secret": auth.Admin()},
			Gate: gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
				t.Errorf("the gate was asked about %s by %q", r.Verb, r.User)
				return gate.Verdict{}
			}},
		})
		addr := serving(t, server, loopback(t))
		for _, token := range []string{"", "wrong"} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+configMaps,
				strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
				t.Errorf("RBAC %v, token %q: %s", rbac, token, response.Status)
			}
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestStopWhileAWriteIsHeld: the server does not wait for the gate.
func TestStopWhileAWriteIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left error
		server, _ := start(t, localapi.Options{Gate: holding(&left)})
		l := newPipes()
		stop := inBackground(t, func(ctx context.Context) error { return server.Serve(ctx, l) })
		c := l.dial(t, post+`{"metadata":{"name":"a"}}`)
		synctest.Wait()
		stop()
		if text, lasts := end(t, c); text != "" || lasts != 0 || left == nil {
			t.Errorf("after %s: %q, the request ended with %v", lasts, text, left)
		}
	})
}

// TestHeldWriteOfAClientThatLeaves: the gate hears of it at once.
func TestHeldWriteOfAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left error
		server, config := start(t, localapi.Options{Gate: holding(&left)})
		c := dialed(t, server, post+`{"metadata":{"name":"a"}}`)
		synctest.Wait()
		_ = c.Close()
		synctest.Wait()
		if left == nil {
			t.Error("the gate still holds the write up")
		}
		if _, err := clientset(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "a",
			metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the write took effect: %v", err)
		}
	})
}
