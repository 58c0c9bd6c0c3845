package manager_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/reconcile"
)

// TestServersEndLast checks that the health server still answers while work in flight is finished and the lease is
// released: alive, but not ready any more. When Run has returned, the port is closed.
func TestServersEndLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, port := newWorld(t), newPort()
		o := elected()
		o.HealthAddr = "port:1"
		m := w.manager(t, o)
		m.ListenOn(port)
		asked := 0
		onConfigMaps(t, m, "slow", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				time.Sleep(5 * time.Second)
				if code, body := port.get("/readyz"); code != 503 ||
					!strings.HasPrefix(body, "[-]manager: stopping\n") {
					t.Errorf("while work is in flight: %d %s", code, body)
				}
				asked++
			}
			return reconcile.Result{}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		if code, body := port.get("/readyz"); code != 200 {
			t.Errorf("while it works: %d %s", code, body)
		}
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Resource == "leases" && r.Verb == "update" && m.InFlight() == 0 {
				if code, body := port.get("/livez"); code != 200 {
					t.Errorf("at the release of the lease: %d %s", code, body)
				}
				asked++
			}
			return gate.Verdict{}
		})
		l.mustEnd()
		if asked != 2 {
			t.Errorf("health was asked %d times during the stop", asked)
		}
		if code, _ := port.get("/livez"); code != 0 {
			t.Errorf("after the end: %d", code)
		}
	})
}

// port is a listener without sockets, so that it can be used in a bubble.
type port struct {
	conns  chan net.Conn // sent by dial, received by Accept, never closed; capacity 0
	closed chan struct{} // closed by Close
	close  sync.Once
}

func newPort() *port { return &port{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *port) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (p *port) Addr() net.Addr { return &net.TCPAddr{Port: 1} }

func (p *port) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// get sends a request to the port. The code is 0 if there is no answer.
func (p *port) get(path string) (int, string) {
	client := &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
	answer, err := client.Get("http://port" + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}
