package webhookclient

import (
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// endless is the answer of a webhook that sends spaces. read counts what was read of it.
type endless struct{ read int }

func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: e, Request: r}, nil
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 300<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

// TestAnswersAreBounded: the answer of a webhook is read up to a bound.
func TestAnswersAreBounded(t *testing.T) {
	answer := &endless{}
	clients := Clients{Local: func(string) http.RoundTripper { return answer }}
	c, err := clients.For(Target{URL: "https://hooks.example.com/a"},
		Codec(admissionv1.AddToScheme, admissionv1.SchemeGroupVersion))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Post().Do(t.Context()).Raw()
	if err == nil || !strings.Contains(err.Error(), "more than 128 MiB") || answer.read > 2*maxAnswer {
		t.Errorf("%v, after %d bytes", err, answer.read)
	}
}

// TestProxies: a proxy is asked for URLs only. The address of a Service is looked up by the dialer, which would take
// that of a proxy for it.
func TestProxies(t *testing.T) {
	var clients Clients
	for what, c := range map[string]struct {
		target Target
		proxy  bool
	}{
		"URL":     {Target{URL: "https://hooks.example.com/a"}, true},
		"service": {Target{Service: &Service{Namespace: "hooks", Name: "a", Port: 443}}, false},
	} {
		r, err := clients.newRoute(c.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.remote.Proxy != nil; got != c.proxy {
			t.Errorf("%s: a proxy is asked for: %v, want %v", what, got, c.proxy)
		}
	}
}
