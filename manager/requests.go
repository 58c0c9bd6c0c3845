package manager

import (
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// measureRequests lets a config's requests be reported.
func measureRequests(config *rest.Config, report func(method, host string, code int, took time.Duration)) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &measured{next: next, report: report} })
}

// measured is a transport that reports each request when its answer begins: a watch does not count for as long as it lasts.
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

// WrappedRoundTripper lets client-go find the transport below.
func (m *measured) WrappedRoundTripper() http.RoundTripper { return m.next }
