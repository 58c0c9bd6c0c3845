package manager

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/internal/serving"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reviewing is an API server that knows one token and allows one path. The zero value answers every request.
type reviewing struct {
	asked int
	down  bool
	away  string   // requests whose path ends in away are not answered
	paths []string // allowed beside /metrics
	both  bool     // the answer has both allowed and denied
}

func (s *reviewing) config() *rest.Config {
	return &rest.Config{
		Host: "http://api", ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			s.asked++
			if s.down || s.away != "" && strings.HasSuffix(r.URL.Path, s.away) {
				return nil, errors.New("no route to host")
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			status := map[string]any{}
			switch {
			case strings.HasSuffix(r.URL.Path, "/tokenreviews") && bytes.Contains(body, []byte(`"good"`)):
				status = map[string]any{
					"authenticated": true,
					"user":          map[string]any{"username": "prometheus", "groups": []string{"g"}},
				}
			case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
				allowed := false
				for _, path := range append(s.paths, "/metrics") {
					allowed = allowed || bytes.Contains(body, []byte(`"path":"`+path+`","verb":"get"`))
				}
				allowed = allowed && bytes.Contains(body, []byte(`"user":"prometheus","groups":["g"]`))
				status = map[string]any{"allowed": allowed, "denied": s.both}
			}
			text, err := json.Marshal(map[string]any{"status": status})
			if err != nil {
				return nil, err
			}
			return &http.Response{
				StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(bytes.NewReader(text)), Request: r,
			}, nil
		}),
	}
}

// Only users that the API server knows and allows can read metrics. While it does not answer, no user can.
func TestReviewFailsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &reviewing{}
		v, err := serving.NewReviewer(server.config())
		if err != nil {
			t.Fatal(err)
		}
		guarded := v.Guard(
			http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) { serving.Answer(w, http.StatusOK, "secret") },
			),
		)
		ask := func(path, header string, want int) {
			t.Helper()
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Authorization", header)
			guarded.ServeHTTP(w, r)
			if w.Code != want || (want != http.StatusOK) == strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s with %q: %d %q, want %d", path, header, w.Code, w.Body, want)
			}
		}
		ask("/metrics", "", http.StatusUnauthorized)
		ask("/metrics", "Basic good", http.StatusUnauthorized)
		ask("/metrics", "Bearer ", http.StatusUnauthorized)
		if server.asked != 0 {
			t.Error("the server was asked about nobody")
		}
		ask("/metrics", "Bearer bad", http.StatusUnauthorized)
		ask("/configz", "Bearer good", http.StatusForbidden)
		ask("/metrics", "Bearer good", http.StatusOK)
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer good")
		if guarded.ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Errorf("who may only read posts: %d", w.Code)
		}
		before := server.asked
		for range 10 {
			ask("/metrics", "Bearer good", http.StatusOK)
		}
		if server.asked != before {
			t.Error("what was allowed a moment ago was asked again")
		}
		server.down = true
		ask("/debug/pprof/", "Bearer good", http.StatusInternalServerError)
		time.Sleep(10 * time.Second) // until the reviewer forgets what was allowed
		ask("/metrics", "Bearer good", http.StatusInternalServerError)
		server.down = false
		for _, away := range []string{"/tokenreviews", "/subjectaccessreviews"} { // one of the two questions
			server.away = away
			ask("/metrics", "Bearer good", http.StatusInternalServerError)
		}
		server.away, server.both = "", true
		ask("/metrics", "Bearer good", http.StatusForbidden)
	})
}

// TestStrangersDoNotStarveReaders: while a flood of unknown tokens comes in, few of them cause a request to the API
// server, and a token that it knows is still reviewed. A single wrong token is reviewed once, however often it comes.
func TestStrangersDoNotStarveReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &reviewing{}
		v, err := serving.NewReviewer(server.config())
		if err != nil {
			t.Fatal(err)
		}
		guarded := v.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func(token string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			guarded.ServeHTTP(w, r)
			return w.Code
		}
		if code := ask("good"); code != http.StatusOK {
			t.Fatalf("before the flood: %d", code)
		}
		began := time.Now()
		for n := range 3000 {
			code := ask(fmt.Sprint("stranger-", n))
			if code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
				t.Fatalf("a stranger: %d", code)
			}
			time.Sleep(10 * time.Millisecond)
			if n%500 == 0 {
				if code := ask("good"); code != http.StatusOK {
					t.Errorf("during the flood, after %v: %d", time.Since(began), code)
				}
			}
		}
		if server.asked > 200 {
			t.Errorf("the API server was asked %d times in %v", server.asked, time.Since(began))
		}
		time.Sleep(time.Minute)
		before := server.asked
		for range 100 {
			if code := ask("wrong"); code != http.StatusUnauthorized {
				t.Errorf("a wrong token: %d", code)
			}
		}
		if server.asked != before+1 {
			t.Errorf("the API server was asked %d times about one wrong token", server.asked-before)
		}
	})
}

// TestFailingReviewsAreLoggedNowAndThen: a flood of requests does not fill the log while the API server is away.
func TestFailingReviewsAreLoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, err := serving.NewReviewer((&reviewing{down: true}).config())
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		log := funcr.New(func(string, string) { lines++ }, funcr.Options{})
		guarded := v.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 1000 {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", "Bearer good")
			guarded.ServeHTTP(httptest.NewRecorder(), r.WithContext(klog.NewContext(t.Context(), log)))
			time.Sleep(100 * time.Millisecond)
		}
		if lines == 0 || lines > 20 {
			t.Errorf("%d lines in 100 seconds, want some and at most 20", lines)
		}
	})
}

// Unauthenticated users see whether the process is healthy. Only users who may read the path see why it is not.
func TestHealthIsBriefForStrangers(t *testing.T) {
	server := &reviewing{}
	v, err := serving.NewReviewer(server.config())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	health := v.Choose(m.HealthHandler(), m.healthHandler(withoutReason))
	ask := func(path, token string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		health.ServeHTTP(w, r)
		return w.Body.String()
	}
	const brief = "[-]manager failed: reason withheld\n"
	if got := ask("/readyz", ""); got != brief || server.asked != 0 {
		t.Errorf("without a token: %q after %d questions", got, server.asked)
	}
	if got := ask("/readyz", "bad"); got != brief {
		t.Errorf("with a token that nobody knows: %q", got)
	}
	server.paths = []string{"/readyz"}
	if got := ask("/readyz", "good"); got != "[-]manager: not started\n" {
		t.Errorf("with a token that may: %q", got)
	}
	server.down = true
	if got := ask("/livez?verbose", "good"); !strings.HasPrefix(got, brief) {
		t.Errorf("while nobody can be asked: %q", got)
	}
}

func TestMetricsForStrangersAreRefused(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	secured := Serving{SelfSigned: true, Review: true}
	for _, c := range []struct {
		addr string
		s    Serving
		says string // "" when it is fine
	}{
		{"127.0.0.1:1", Serving{}, ""},
		{"[::1]:1", Serving{}, ""},
		{"localhost:1", Serving{}, ""},
		{":1", Serving{}, "DebugAddr :1 is not loopback: set Serving.Review with CertFile and KeyFile"},
		{"0.0.0.0:1", Serving{SelfSigned: true}, "is not loopback"},
		{"0.0.0.0:1", Serving{Insecure: true}, ""},
		{"0.0.0.0:1", secured, ""},
		{":1", Serving{Review: true}, "needs TLS"},
		{":1", Serving{CertFile: "x"}, "CertFile and KeyFile, or neither"},
		{":1", Serving{CertFile: "x", KeyFile: "x", SelfSigned: true}, "both set"},
		{
			":1",
			Serving{CertFile: "/none", KeyFile: "/none", Review: true},
			"certificate /none with key /none: open /none",
		},
		{":1", Serving{SelfSigned: true, Review: true, Insecure: true}, "contradict"},
	} {
		_, err := New(config, Options{DebugAddr: c.addr, Serving: c.s})
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s with %+v: %v, want %q", c.addr, c.s, err, c.says)
		}
	}
}

// Everything is served at one address, by TLS and without HTTP/2. Health is open to everyone, the rest is not.
func TestServesTLS(t *testing.T) {
	m, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{
		HealthAddr: "127.0.0.1:0", DebugAddr: "127.0.0.1:0", ServerTimeout: -1,
		Serving: Serving{SelfSigned: true, Review: true}, Configz: map[string]int{"workers": 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	for m.DebugAddr() == "" {
		runtime.Gosched()
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	for path, want := range map[string]int{"/livez": 200, "/configz": 401, "/debug/pprof/": 401, "/metrics": 404} {
		response, err := client.Get("https://" + m.DebugAddr() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want || response.ProtoMajor != 1 || response.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%s: %s by %s", path, response.Status, response.Proto)
		}
	}
	old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if conn, err := tls.Dial("tcp", m.DebugAddr(), old); err == nil ||
		!strings.Contains(err.Error(), "protocol version not supported") {
		t.Errorf("TLS 1.1: %v, %v", conn, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	serving.Debug(m.options.Configz).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/configz", nil))
	if w.Code != 200 || w.Body.String() != "{\n  \"workers\": 3\n}\n" {
		t.Errorf("configz %d %q", w.Code, w.Body)
	}
	if _, err := net.Dial("tcp", m.DebugAddr()); err == nil {
		t.Error("the port is still open")
	}
}
