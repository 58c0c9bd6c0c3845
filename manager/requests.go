package manager

import (
	"context"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
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
