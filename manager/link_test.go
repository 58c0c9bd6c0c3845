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

// link is a process's connection to the API: what goes through can be held up or lost.
type link struct {
	mu   sync.Mutex
	lost bool
	slow time.Duration
	// open is closed while nothing holds requests up.
	open chan struct{}
	// deaf requests do not end with their context while they are held up.
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

// clock is what a process's clock makes of the leases that it writes and reads.
type clock struct {
	mu sync.Mutex
	// ahead is by how much its wall clock is wrong.
	ahead time.Duration
	// fast is by how much its monotonic clock is too fast: a lease of 15 s is over after 15 s / fast. 0 is 1.
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

// wrap rewrites leases on their way: times that the process of that identity wrote are those of its wall clock, and
// how long it waits for others is measured by its monotonic clock.
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
