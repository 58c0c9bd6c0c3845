package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// counts are Metrics that count.
type counts struct {
	codes  map[int]int
	begun  int
	panics []string
}

func (c *counts) WebhookRequest(string) func(int, time.Duration) {
	c.begun++
	return func(code int, _ time.Duration) { c.codes[code]++ }
}

func (c *counts) WebhookPanic(path string)              { c.panics = append(c.panics, path) }
func (c *counts) WebhookCertificates(func() (int, int)) {}

func get(s *webhook.Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestRequestsAreMeasured(t *testing.T) {
	measured := &counts{codes: map[int]int{}}
	s := webhook.NewServer(webhook.Options{Metrics: measured})
	for path, hook := range map[string]http.HandlerFunc{
		"/quiet":  func(http.ResponseWriter, *http.Request) {},
		"/teapot": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"/panic":  func(http.ResponseWriter, *http.Request) { panic("oops") },
		"/late": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("so far"))
			panic("oops")
		},
		"/below/": func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.URL.Path)) },
	} {
		if err := s.Register(path, hook); err != nil {
			t.Fatal(err)
		}
	}
	for path, code := range map[string]int{
		"/quiet": 200, "/teapot": 418, "/panic": 500, "/late": 200, "/below/a": 200, "/unknown": 404, "/": 404,
	} {
		if got := get(s, path); got.Code != code {
			t.Errorf("%s: status %d, want %d", path, got.Code, code)
		}
	}
	if got := get(s, "/panic").Body.String(); !strings.Contains(got, "panic: oops [recovered]") {
		t.Errorf("a panic is answered by %s", got)
	}
	if got := get(s, "/unknown").Body.String(); !strings.Contains(got, "there is no webhook at /unknown; there are ") {
		t.Errorf("an unknown path is answered by %s", got)
	}
	if measured.begun != 6 || measured.codes[500] != 2 || measured.codes[418] != 1 || len(measured.panics) != 3 {
		t.Errorf("measured %+v", measured)
	}
}

func TestRegisterMisuse(t *testing.T) {
	s := webhook.NewServer(webhook.Options{})
	hook := http.NotFoundHandler()
	if err := s.Register("/a", hook); err != nil {
		t.Fatal(err)
	}
	var nobody *webhook.Admission
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("no path", func() error { return s.Register("", hook) }, "want a path like /validate-v1-pod"),
		misusetest.Of("a host", func() error { return s.Register("example.org/a", hook) }, "want a path like"),
		misusetest.Of("a method", func() error { return s.Register("/a POST", hook) }, "want a path like"),
		misusetest.Of("everything", func() error { return s.Register("/", hook) }, "want a path like"),
		misusetest.Of("nothing", func() error { return s.Register("/b", nil) }, "the handler is nil"),
		misusetest.Of("a typed nil", func() error { return s.Register("/b", nobody) }, "the handler is a nil"),
		misusetest.Of("twice", func() error { return s.Register("/a", hook) }, "the path is taken"),
	})
}

func TestConversionWhosePathIsTaken(t *testing.T) {
	s := webhook.NewServer(webhook.Options{})
	if err := s.Register(webhook.ConvertPath, http.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Conversion(runtime.NewScheme()); err == nil || !strings.Contains(err.Error(), "is taken") {
			t.Errorf("error %v", err)
		}
	}
}

// Run closes the listener, also if it never served.
func TestRunClosesTheListener(t *testing.T) {
	for name, c := range map[string]struct {
		ca, says string
		hooks    bool
	}{
		"no webhook":      {},
		"no client's CA":  {"missing.crt", "authorities of clients: ", true},
		"stopped at once": {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			s := webhook.NewServer(webhook.Options{Listener: l, CertDir: t.TempDir(), ClientCAName: c.ca})
			if c.hooks {
				if err := s.Register("/a", http.NotFoundHandler()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			if c.says == "" {
				cancel()
			}
			defer cancel()
			err = s.Run(ctx)
			if c.says == "" && err != nil || c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("run: %v", err)
			}
			if err := l.(*net.TCPListener).SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the listener is open: %v", err)
			}
		})
	}
}
