package leader

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// body records whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestFenceRefusesWritesOnly(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		method string
		err    error
		fenced bool
		passes bool
	}{
		{"GET", lost, true, true},
		{"HEAD", lost, true, true},
		{"POST", lost, true, false},
		{"PUT", lost, true, false},
		{"PATCH", lost, true, false},
		{"DELETE", lost, true, false},
		{"POST", nil, true, true},
		{"POST", lost, false, true}, // a context without a fence: work that needs no leadership
	} {
		passed := false
		fence := Fence(transport(func(*http.Request) (*http.Response, error) { passed = true; return nil, nil }))
		content := &body{Reader: strings.NewReader("{}")}
		r := httptest.NewRequest(c.method, "/api/v1/namespaces/default/pods", content)
		r.Body = content
		if c.fenced {
			r = r.WithContext(WithFence(t.Context(), func() error { return c.err }))
		}
		_, err := fence.RoundTrip(r)
		if passed != c.passes || errors.Is(err, lost) == c.passes || content.closed == c.passes {
			t.Errorf("%+v: passed %v, error %v, body closed %v", c, passed, err, content.closed)
		}
	}
}

// If a context has two fences, each of them can reject a write.
func TestNestedFences(t *testing.T) {
	outer, inner := errors.New("outer"), errors.New("inner")
	for _, c := range []struct{ outer, inner, want error }{
		{nil, nil, nil}, {outer, nil, outer}, {nil, inner, inner}, {outer, inner, outer},
	} {
		fence := Fence(transport(func(*http.Request) (*http.Response, error) { return nil, nil }))
		ctx := WithFence(t.Context(), func() error { return c.outer })
		r := httptest.NewRequest("DELETE", "/api/v1/nodes/a",
			nil).WithContext(WithFence(ctx, func() error { return c.inner }))
		if _, err := fence.RoundTrip(r); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("outer %v, inner %v: %v", c.outer, c.inner, err)
		}
	}
}
