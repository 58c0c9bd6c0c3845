package leader

import (
	"context"
	"fmt"
	"net/http"
)

type fenceKey struct{}

// WithFence returns a context with which no write begins when check returns an error. It takes a client whose transport is
// wrapped by [Fence]. What fences ctx already is asked, too.
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

// Fence wraps a transport so that it refuses writes made with a context of [WithFence] when its check does. The check is asked
// at the last moment before the request, which holds also in a process that was stopped for a while. Reads pass.
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
			_ = r.Body.Close() // a transport always closes it
		}
		return nil, fmt.Errorf("write refused: %w", err)
	}
	return f.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (f *fence) WrappedRoundTripper() http.RoundTripper { return f.next }
