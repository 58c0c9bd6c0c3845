package optest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
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

// left takes the writes, and describes them; without any it returns "".
func (w *Writes) left(what string) string {
	if all := w.Take(); len(all) > 0 {
		return fmt.Sprintf("%s: %q", what, all)
	}
	return ""
}

// RoundTripper is a function that implements http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
