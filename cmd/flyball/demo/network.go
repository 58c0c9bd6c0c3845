package demo

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// network is between the controllers and the API. It has the troubles that the story asks for.
//
// Concurrency: all methods may be called from any goroutine.
type network struct {
	forget func(context.Context) error // makes the API forget its history
	loses  atomic.Bool                 // the answer to the next create of a Pod

	mu sync.Mutex
	// up is done while the API is away, which ends the watches that were open. down ends it.
	up   context.Context
	down context.CancelFunc
}

func newNetwork(forget func(context.Context) error) *network {
	n := &network{forget: forget}
	n.up, n.down = context.WithCancel(context.Background())
	return n
}

var (
	errAway = errors.New("the API is away")
	errLost = errors.New("the answer has been lost")
)

// leave breaks all watches off. Requests fail until comeBack.
func (n *network) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down()
}

func (n *network) comeBack() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up.Err() != nil {
		n.up, n.down = context.WithCancel(context.Background())
	}
}

// send sends a request to next.
func (n *network) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	n.mu.Lock()
	up := n.up
	n.mu.Unlock()
	if up.Err() != nil {
		return nil, errAway
	}
	if r.URL.Query().Has("watch") {
		ctx, cancel := context.WithCancelCause(r.Context())
		stop := context.AfterFunc(up, func() { cancel(errAway) })
		context.AfterFunc(ctx, func() { stop() })
		return next.RoundTrip(r.WithContext(ctx))
	}
	answer, err := next.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") &&
		n.loses.CompareAndSwap(true, false) {
		return nil, errors.Join(errLost, answer.Body.Close())
	}
	return answer, err
}
