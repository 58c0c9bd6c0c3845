package manager

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// measureRequests makes clients of config report their requests.
func measureRequests(config *rest.Config, report func(method, host string, code int, took time.Duration)) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &measured{next: next, report: report} })
}

// measured is a transport that reports each request when its response begins, so that the duration of a watch does not
// count.
type measured struct {
	next   http.RoundTripper
	report func(method, host string, code int, took time.Duration)
}

// RoundTrip implements http.RoundTripper.
func (m *measured) RoundTrip(r *http.Request) (*http.Response, error) {
	begin := time.Now()
	answer, err := m.next.RoundTrip(r)
	code := 0
	if err == nil {
		code = answer.StatusCode
	}
	m.report(r.Method, r.URL.Host, code, time.Since(begin))
	return answer, err
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (m *measured) WrappedRoundTripper() http.RoundTripper { return m.next }

// measureThrottling returns a config for one client, with a rate limiter of the same limit that reports how long each
// request waited.
func measureThrottling(config *rest.Config, report func(host string, waited time.Duration)) *rest.Config {
	limiter := config.RateLimiter
	if limiter == nil && config.QPS > 0 {
		limiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(config.Burst, 1))
	}
	if limiter == nil {
		return config
	}
	host := config.Host
	if server, _, err := rest.DefaultServerUrlFor(config); err == nil {
		host = server.Host
	}
	own := rest.CopyConfig(config)
	own.RateLimiter = &throttled{limiter, host, report}
	return own
}

// throttled is a rate limiter that reports how long each request waited.
type throttled struct {
	flowcontrol.RateLimiter
	host   string
	report func(host string, waited time.Duration)
}

// Wait implements flowcontrol.RateLimiter.
func (t *throttled) Wait(ctx context.Context) error {
	begin := time.Now()
	err := t.RateLimiter.Wait(ctx)
	t.report(t.host, time.Since(begin))
	return err
}

// warnings logs the text of each Warning header once: the server repeats the warning about a deprecated resource with
// every response.
type warnings struct {
	mu sync.Mutex
	// seen holds the texts that were logged. Invariant: it holds at most maxWarnings texts; further ones are not
	// logged.
	seen map[string]struct{}
}

const (
	maxWarnings = 1000
	// miscellaneous is the only warning code that the API server itself sends.
	//
	// Source: RFC 7234 section 5.5.7; client-go v0.37.2 rest/warnings.go.
	miscellaneous = 299
)

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == miscellaneous && text != "" && w.isNew(text) {
		klog.FromContext(ctx).Info("Warning from the API server", "warning", text)
	}
}

func (w *warnings) isNew(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, old := w.seen[text]; old || len(w.seen) >= maxWarnings {
		return false
	}
	if w.seen == nil {
		w.seen = make(map[string]struct{})
	}
	w.seen[text] = struct{}{}
	return true
}

// probe is a check that the program added.
type probe struct {
	name string
	do   func(*http.Request) error
}

// probes are the checks that the program added to liveness or to readiness, in order of addition.
type probes struct {
	mu  sync.Mutex
	all []probe // Added to, but never changed.
}

// AddHealthzCheck adds a check to liveness: /livez and /healthz fail while do returns an error. The kubelet then
// restarts the container, so do should fail only if that helps. It is called for every probe, with the probe's request,
// possibly several times at once, and must return when the request's context ends. A panic counts as an error. Checks
// can be added at any time.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddHealthzCheck(name string, do func(*http.Request) error) error {
	return m.live.add("liveness", name, do)
}

// AddReadyzCheck adds a check to readiness: /readyz fails while do returns an error, and [Manager.Ready] returns it.
// For do, see [Manager.AddHealthzCheck]. It must not call Ready, which calls it with a request that has no headers and
// no deadline.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddReadyzCheck(name string, do func(*http.Request) error) error {
	return m.ready.add("readiness", name, do)
}

func (p *probes) add(kind, name string, do func(*http.Request) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" || do == nil {
		return fmt.Errorf("manager: add a check of %s %q: a name and a function are required", kind, name)
	}
	if slices.ContainsFunc(p.all, func(other probe) bool { return other.name == name }) {
		return fmt.Errorf("manager: add a check of %s: there is one with the name %q", kind, name)
	}
	p.all = append(p.all, probe{name, do})
	return nil
}

func (p *probes) list() []probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// check runs all of them.
func (p *probes) check(r *http.Request) (checks []check) {
	for _, each := range p.list() {
		checks = append(checks, each.check(r))
	}
	return checks
}

func (p probe) check(r *http.Request) (c check) {
	c.name = p.name
	defer func() {
		if v := recover(); v != nil {
			c.problem = fmt.Sprintf("the check panicked: %v", v)
		}
	}()
	if err := p.do(r); err != nil {
		c.problem = err.Error()
	}
	return c
}
