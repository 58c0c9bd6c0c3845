package manager_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// TestServersEndLast: while work in flight is finished, and when the lease is released after that, health still answers: alive, and
// not ready any more. When Run has returned nobody listens.
func TestServersEndLast(t *testing.T) {
	w := newWorld(t)
	o := elected()
	o.HealthAddr = "127.0.0.1:0"
	m := w.manager(t, o)
	begun := make(chan struct{}, 1)
	var stopping atomic.Bool
	onConfigMaps(t, m, "slow", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		if r.Name == "work" {
			begun <- struct{}{}
			for !stopping.Load() {
				time.Sleep(time.Millisecond)
			}
			if code, body := askHealth(m, "/readyz"); code != 503 || !strings.HasPrefix(body, "[-]manager: stopping\n") {
				t.Errorf("while work is in flight: %d %s", code, body)
			}
		}
		return reconcile.Result{}, nil
	})
	w.create(t, m, "work")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	<-begun
	var released atomic.Bool
	w.refuse(func(r *gate.Request) gate.Verdict {
		if r.Resource == "leases" && r.Verb == "update" && m.InFlight() == 0 {
			if code, body := askHealth(m, "/livez"); code != 200 {
				t.Errorf("at the release of the lease: %d %s", code, body)
			}
			released.Store(true)
		}
		return gate.Verdict{}
	})
	stop()
	for code := 0; code != 503; { // until it has heard of the stop
		code, _ = askHealth(m, "/readyz")
	}
	stopping.Store(true)
	if err := <-done; err != nil || !released.Load() {
		t.Errorf("run: %v; the lease was released: %v", err, released.Load())
	}
	if code, _ := askHealth(m, "/livez"); code != 0 {
		t.Errorf("after the end: %d", code)
	}
}

// askHealth asks the manager's listener; the code is 0 when nobody answers.
func askHealth(m *manager.Manager, path string) (int, string) {
	answer, err := http.Get("http://" + m.HealthAddr() + path)
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
