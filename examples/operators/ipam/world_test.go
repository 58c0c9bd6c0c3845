package main

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// World is a cluster on which the operator runs.
type World struct {
	*optest.World
	// NS is the scenario's namespace.
	NS string

	on       optest.Cluster
	scenario Scenario
	options  controller.Options
	before   before
	stop     func()
}

// Play plays the scenario with a namespace and an operator of its own, which it removes afterwards.
func (s Scenario) Play(t *testing.T, on optest.Cluster) {
	t.Helper()
	c := newClient(t, on.Admin)
	w := &World{World: optest.NewWorld(t, c), NS: s.Name, on: on, scenario: s, options: controller.Defaults()}
	w.options.MinInterval = 20 * time.Millisecond
	w.options.ShowFor, w.options.MismatchGrace = 500*time.Millisecond, 500*time.Millisecond
	if s.Options != nil {
		s.Options(&w.options)
	}
	w.Must(c.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.NS}}))
	w.Start()
	defer func() { w.stop() }()
	defer w.clear()
	s.Does(w)
}

// newClient returns a client that knows the operator's kinds.
func newClient(t *testing.T, config *rest.Config) *client.Cluster {
	t.Helper()
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Start starts the operator.
func (w *World) Start() {
	w.Helper()
	config := rest.CopyConfig(w.on.Operator)
	config.Wrap(w.before.wrap)
	config.Wrap(w.Wrap)
	o := ctrl.Options{LeaderElection: manager.LeaderElection{
		Enabled: w.scenario.Elect, Namespace: operator.Namespace, Name: operator.Name,
	}}
	w.stop = w.Go(func(ctx context.Context) error {
		mgr, err := controller.New(ctx, config, o, w.options)
		if err != nil {
			return err
		}
		return mgr.Run(ctx)
	})
}

// Idle waits until writes have stopped, and then fails the test if the operator writes.
func (w *World) Idle() {
	w.Helper()
	idle := cmp.Or(w.scenario.Idle, 10*time.Minute)
	if w.on.Real {
		idle = time.Second
	}
	w.World.Idle(w.quiet(), idle)
}

func (w *World) settle() {
	w.Helper()
	w.Settle(w.quiet())
}

// quiet returns a time longer than conditions report what was done.
func (w *World) quiet() time.Duration { return max(w.options.ShowFor, 0) + 1500*time.Millisecond }

// Before calls do once, before the operator sends a request with that method and with part in its path.
func (w *World) Before(method, path string, do func()) {
	w.before.mu.Lock()
	defer w.before.mu.Unlock()
	w.before.method, w.before.path, w.before.do = method, path, do
}

// before is a function to call before a request.
type before struct {
	mu           sync.Mutex
	method, path string
	do           func() // nil: nothing
}

func (b *before) wrap(next http.RoundTripper) http.RoundTripper {
	return optest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if do := b.take(r); do != nil {
			do()
		}
		return next.RoundTrip(r)
	})
}

func (b *before) take(r *http.Request) (do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.do != nil && r.Method == b.method && strings.Contains(r.URL.Path, b.path) {
		do, b.do = b.do, nil
	}
	return do
}
