package shard_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// network simulates the network between one replica and all servers, and whether the replica's process runs.
type network struct {
	mu     sync.Mutex
	random *rand.Rand
	// slow is the longest time that a request takes, there and back.
	slow time.Duration
	// cut means that no packet arrives. whole is closed while packets arrive, and replaced when they do not any more.
	// Never sent on.
	cut   bool
	whole chan struct{}
	// runs is closed while the process runs, and replaced when the process is stopped. Never sent on.
	runs chan struct{}
}

func newNetwork(seed uint64) *network {
	w := &network{
		random: rand.New(rand.NewPCG(seed, 7)), slow: 40 * time.Millisecond, whole: make(chan struct{}),
		runs: make(chan struct{}),
	}
	close(w.whole)
	close(w.runs)
	return w
}

// delay sets the longest time that a request takes from now on.
func (w *network) delay(slow time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = slow
}

// partition drops all packets until the function that it returns is called.
func (w *network) partition() (heal func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := make(chan struct{})
	w.cut, w.whole = true, whole
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cut = false
		close(whole)
	}
}

// stop is like SIGSTOP. The function that it returns is like SIGCONT.
func (w *network) stop() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := make(chan struct{})
	w.runs = runs
	return func() { close(runs) }
}

// pause blocks while the process is stopped.
func (w *network) pause() {
	w.mu.Lock()
	runs := w.runs
	w.mu.Unlock()
	<-runs
}

func (w *network) look() (way time.Duration, cut bool, whole chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.random.Int64N(int64(w.slow)/2 + 1)), w.cut, w.whole
}

var errNoRoute = errors.New("connection timed out")

// lost waits as a client does whose request or answer does not arrive.
func lost(ctx context.Context, whole chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-whole:
	case <-time.After(30 * time.Second):
	}
	return errNoRoute
}

// over returns a transport through this network. A request on its way arrives even if the client gives up.
func (w *network) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		there, cut, whole := w.look()
		time.Sleep(there)
		if cut {
			return nil, lost(r.Context(), whole)
		}
		arrived := r
		if r.Method != http.MethodGet {
			arrived = r.WithContext(context.WithoutCancel(r.Context()))
		}
		resp, err := next.RoundTrip(arrived)
		if err != nil {
			return nil, err
		}
		back, cut, whole := w.look()
		time.Sleep(back)
		if cut {
			_ = resp.Body.Close()
			return nil, lost(r.Context(), whole)
		}
		resp.Body = &stream{ReadCloser: resp.Body, network: w, ctx: r.Context()}
		return resp, nil
	})
}

// withPauses returns a transport that blocks while the process is stopped, both right before a request is sent and
// right after its answer has arrived.
func (w *network) withPauses(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.pause()
		if err := r.Context().Err(); err != nil { // net/http sends nothing then
			return nil, err
		}
		resp, err := next.RoundTrip(r)
		w.pause()
		return resp, err
	})
}

// stream is a response body that comes through this network. During a partition its data is lost, and the connection
// ends.
type stream struct {
	io.ReadCloser
	network *network
	ctx     context.Context
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.network.pause()
	if _, cut, whole := s.network.look(); cut {
		return 0, lost(s.ctx, whole)
	}
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
