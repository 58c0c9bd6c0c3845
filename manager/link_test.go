package manager_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// link is a process's connection to the API server. Requests can be held up or lost.
type link struct {
	mu   sync.Mutex
	lost bool
	slow time.Duration
	// open is closed while requests pass without being held up.
	open chan struct{}
	// deaf means that requests that are held up do not end with their context.
	deaf bool
}

func newLink() *link {
	l := &link{open: make(chan struct{})}
	close(l.open)
	return l
}

func (l *link) set(lost bool, slow time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.slow = lost, slow
}

// stopped holds every request until the function that it returns is called.
func (l *link) stopped() (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	l.open = gate
	return func() { close(gate) }
}

func (l *link) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		lost, slow, open := l.lost, l.slow, l.open
		l.mu.Unlock()
		over := r.Context().Done()
		if l.deaf {
			over = nil
		}
		select {
		case <-open:
		case <-over:
			return nil, r.Context().Err()
		}
		if slow > 0 {
			time.Sleep(slow)
		}
		if lost {
			return nil, fmt.Errorf("no route to host")
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clock simulates a wrong clock by changing the leases that a process writes and reads.
type clock struct {
	mu sync.Mutex
	// ahead is how far the wall clock is ahead.
	ahead time.Duration
	// fast is the factor by which the monotonic clock is too fast: a lease of 15 s expires after 15 s / fast. Less than
	// 1 means 1.
	fast float64
}

func (c *clock) move(ahead time.Duration, fast float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.fast = ahead, fast
}

func (c *clock) read() (ahead time.Duration, fast float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, max(c.fast, 1)
}

// wrap rewrites leases in requests and responses. Times that the process writes are those of its wall clock, and are
// shifted back when it reads its own lease. In the leases of others it divides the duration by fast, as if the process
// measured its wait by a fast clock.
func (c *clock) wrap(identity string, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ahead, fast := c.read()
		if r.Body != nil {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			text = rewriteLease(text, func(spec map[string]any) { shiftLease(spec, ahead) })
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		}
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		text = rewriteLease(text, func(spec map[string]any) {
			if spec["holderIdentity"] == identity {
				shiftLease(spec, -ahead)
			} else if seconds, ok := spec["leaseDurationSeconds"].(float64); ok {
				spec["leaseDurationSeconds"] = int(seconds / fast)
			}
		})
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return resp, nil
	})
}

// rewriteLease changes the spec of a lease in JSON. Any other text is returned unchanged.
func rewriteLease(text []byte, change func(spec map[string]any)) []byte {
	var lease map[string]any
	if json.Unmarshal(text, &lease) != nil {
		return text
	}
	spec, ok := lease["spec"].(map[string]any)
	if !ok {
		return text
	}
	change(spec)
	changed, err := json.Marshal(lease)
	if err != nil {
		return text
	}
	return changed
}

func shiftLease(spec map[string]any, by time.Duration) {
	for _, field := range []string{"renewTime", "acquireTime"} {
		value, _ := spec[field].(string)
		if at, err := time.Parse(time.RFC3339Nano, value); err == nil {
			spec[field] = at.Add(by).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
		}
	}
}
