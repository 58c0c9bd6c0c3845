package optest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Writes are what an operator writes, without what announces itself only: events and leases. The zero value has seen none.
//
// Concurrency: all methods may be called from any goroutine.
type Writes struct {
	mu  sync.Mutex
	all []string
}

// Wrap is for rest.Config.Wrap.
func (w *Writes) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if path := r.URL.Path; r.Method != http.MethodGet && !strings.Contains(path, "/events") && !strings.Contains(path, "/leases") {
			w.mu.Lock()
			w.all = append(w.all, r.Method+" "+path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// Take returns what was written since it was called last.
func (w *Writes) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// Settle waits until nothing was written for some time.
func (w *Writes) Settle(t *testing.T, quiet time.Duration) {
	t.Helper()
	Eventually(t, 2*time.Minute, func() string {
		w.Take()
		time.Sleep(quiet)
		if writes := w.Take(); len(writes) > 0 {
			return fmt.Sprintf("there are still writes: %q", writes)
		}
		return ""
	})
}

// Idle lets it settle, and then fails the test if anything is written.
func (w *Writes) Idle(t *testing.T, quiet, idle time.Duration) {
	t.Helper()
	w.Settle(t, quiet)
	time.Sleep(idle)
	if writes := w.Take(); len(writes) > 0 {
		t.Errorf("idle for %v, and yet: %q", idle, writes)
	}
}

// RoundTripper is a function as one.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Eventually asks until the answer is "", and fails the test with it when the time is over.
func Eventually(t *testing.T, within time.Duration, ask func() (missing string)) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		missing := ask()
		switch {
		case missing == "":
			return
		case time.Now().After(deadline):
			t.Fatal(missing)
		}
	}
}
