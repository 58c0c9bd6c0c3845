package leader

import (
	"context"
	"fmt"
	"net/http"
)

type fenceKey struct{}

// WithFence returns a context with which no write begins while check returns an error. It works with clients whose
// transport is wrapped by [Fence]. If ctx has a fence already, both checks must pass.
func WithFence(ctx context.Context, check func() error) context.Context {
	if outer, fenced := ctx.Value(fenceKey{}).(func() error); fenced {
		inner := check
		check = func() error {
			if err := outer(); err != nil {
				return err
			}
			return inner()
		}
	}
	return context.WithValue(ctx, fenceKey{}, check)
}

// Fence wraps a transport so that it rejects a write whose context is from [WithFence] if the check returns an error.
// It calls the check immediately before the request, so that it is right even in a process that was stopped for a
// while. Reads pass.
func Fence(next http.RoundTripper) http.RoundTripper { return &fence{next: next} }

type fence struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	check, fenced := r.Context().Value(fenceKey{}).(func() error)
	if !fenced || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return f.next.RoundTrip(r)
	}
	if err := check(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close the body, even on errors
		}
		return nil, fmt.Errorf("write refused: %w", err)
	}
	return f.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }
