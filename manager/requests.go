package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/objects"
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

// reachInterval is the time between two requests.
const reachInterval = time.Second

// awaitServer waits until the API server answers, but at most for Options.ServerTimeout. Any response of an API server
// counts, except one that rejects the credentials.
//
// Errors: one line that describes the problem; nil if ctx ended.
func (m *Manager) awaitServer(ctx context.Context) error {
	if m.options.ServerTimeout < 0 {
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, m.options.ServerTimeout)
	defer cancel()
	for first := true; ; first = false {
		err := m.askServer(patience)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if patience.Err() == nil {
			m.state.note(err)
			if first {
				klog.FromContext(ctx).Info("Waiting for the API server", "err", err, "timeout", m.options.ServerTimeout)
			}
		} else if _, last := m.state.get(); last != nil {
			return last // not the error of the request that the timeout cut short
		} else {
			return err
		}
		pause := time.NewTimer(reachInterval)
		select {
		case <-pause.C:
		case <-patience.Done():
		}
		pause.Stop()
	}
}

// askServer asks the server for its identity, which the informers have to know, too.
func (m *Manager) askServer(ctx context.Context) error {
	err := m.informers.Reach(ctx)
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s rejects the credentials: %w", m.server(), err)
	case errors.As(err, &status) && status.Status().Code == http.StatusBadRequest:
		return fmt.Errorf("%s does not answer as an API server: %s", m.server(), serverText(status.Status()))
	case errors.As(err, new(*objects.DecodeError)):
		return fmt.Errorf("%s does not answer as an API server: %w", m.server(), err)
	case errors.As(err, &status) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsInternalError(err):
		return nil // the server is there; a forbidden request is reported where it matters
	}
	return &unreachableError{Server: m.server(), Err: err}
}

// serverText returns the text of a response that is not a Status, for example "Client sent an HTTP request to an HTTPS
// server."
func serverText(s metav1.Status) string {
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Type == metav1.CauseTypeUnexpectedServerResponse && cause.Message != "" {
				return cause.Message
			}
		}
	}
	return s.Message
}

// server returns the address in the config as a URL.
func (m *Manager) server() string {
	if base, _, err := rest.DefaultServerUrlFor(m.config); err == nil {
		return base.Scheme + "://" + base.Host
	}
	return m.config.Host
}

// unreachableError is the error of an API server that did not answer.
type unreachableError struct {
	Server string // scheme and host
	Err    error
}

// Error returns one line without the request's path and the layers below, for example "cannot reach
// https://10.0.0.1:6443: connection refused".
func (e *unreachableError) Error() string {
	return fmt.Sprintf("cannot reach %s: %s", e.Server, reason(e.Err))
}

// Unwrap returns the transport's error.
func (e *unreachableError) Unwrap() error { return e.Err }

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if unreachable := (*url.Error)(nil); errors.As(err, &unreachable) {
		err = unreachable.Err
	}
	if op := (*net.OpError)(nil); !errors.As(err, &op) {
		return err.Error() // for example a TLS error, which is clear by itself
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
