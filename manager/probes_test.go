package manager_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// TestOwnProbes adds checks to the manager that pass, fail and panic.
func TestOwnProbes(t *testing.T) {
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var liveErr, readyErr error
	live := func(r *http.Request) error {
		if r.Header.Get("Panic") != "" {
			panic("no disk")
		}
		return liveErr
	}
	for _, err := range []error{
		m.AddHealthzCheck("disk", live), m.AddReadyzCheck("disk", func(r *http.Request) error {
			_ = r.URL.Path // It is always there.
			return readyErr
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, err := range map[string]error{
		"a taken name": m.AddHealthzCheck("disk", live), "no name": m.AddReadyzCheck("", live),
		"no function": m.AddReadyzCheck("cache", nil),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	get := func(path string, headers ...string) (int, string) {
		r, answer := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		for _, h := range headers {
			r.Header.Set(h, "yes")
		}
		m.HealthHandler().ServeHTTP(answer, r)
		return answer.Code, answer.Body.String()
	}
	want := func(code int, text, path string, headers ...string) {
		t.Helper()
		if gotCode, got := get(path, headers...); gotCode != code || !strings.Contains(got, text) {
			t.Errorf("%s: %d %q, want %d %q", path, gotCode, got, code, text)
		}
	}
	want(200, "ok", "/livez")
	want(200, "[+]disk ok", "/livez?verbose")
	want(200, "[+]disk ok", "/healthz/disk")
	want(200, "[+]disk ok", "/livez/disk")
	want(200, "[+]disk ok", "/readyz/disk")
	want(503, "[-]manager: not started", "/readyz/manager")
	want(404, "known: disk", "/healthz/nonesuch")
	want(404, "known: manager, disk", "/readyz/nonesuch")
	want(500, "[-]disk: the check panicked: no disk", "/healthz", "Panic")
	liveErr = errors.New("read-only")
	want(500, "[-]disk: read-only", "/livez")
	want(500, "livez check failed", "/healthz?verbose")
	want(500, "[-]disk: read-only", "/healthz/disk")
	if err := m.Add(runnable{name: "disk", run: untilStopped}); err != nil {
		t.Fatal(err)
	}
	want(500, "[-]disk: read-only", "/healthz/disk")
	if _, got := get("/readyz"); strings.Contains(got, "disk") {
		t.Errorf("the check of liveness is in readiness: %s", got)
	}
	readyErr = errors.New("half full")
	want(503, "[-]disk: half full", "/readyz")
	want(503, "[-]disk: half full", "/readyz/disk")
	if err := m.Ready(); err == nil || !strings.Contains(err.Error(), "disk: half full") {
		t.Errorf("Ready: %v", err)
	}
}
