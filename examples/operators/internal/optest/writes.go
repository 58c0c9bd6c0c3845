package optest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Writes records what an operator writes, without events and leases. The zero value is empty and ready to use.
//
// Concurrency: all methods may be called from any goroutine.
type Writes struct {
	mu  sync.Mutex
	all []string
}

// Wrap is for rest.Config.Wrap.
func (w *Writes) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if path := r.URL.Path; r.Method != http.MethodGet && !strings.Contains(path, "/events") &&
			!strings.Contains(path, "/leases") {
			w.mu.Lock()
			w.all = append(w.all, r.Method+" "+path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// Take returns what was written since the last call.
func (w *Writes) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// Settle waits until nothing has been written for some time.
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

// Idle waits until writes have stopped, and then fails the test if anything is written.
func (w *Writes) Idle(t *testing.T, quiet, idle time.Duration) {
	t.Helper()
	w.Settle(t, quiet)
	time.Sleep(idle)
	if writes := w.Take(); len(writes) > 0 {
		t.Errorf("idle for %v, and yet: %q", idle, writes)
	}
}

// RoundTripper is a function that implements http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Eventually polls ask until it returns "". When the time is over, it fails the test with the last result.
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
