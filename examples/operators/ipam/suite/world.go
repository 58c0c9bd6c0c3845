package suite

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/manifests"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Cluster is a cluster on which scenarios run.
type Cluster struct {
	// Admin may do everything, Operator only what its manifests grant. The manifests are applied.
	Admin, Operator *rest.Config
	// Idle is how long there must be no write when there is nothing to do.
	Idle time.Duration
	// Base are the options of the operator's manager.
	Base ctrl.Options
}

// World is a cluster on which the operator runs, and the client of a scenario.
type World struct {
	*testing.T
	client.Client // the administrator's, which reads from the server
	// NS is the scenario's namespace.
	NS  string
	ctx context.Context

	cluster Cluster
	options controller.Options
	writes  optest.Writes
	before  before
	stop    context.CancelFunc
	done    chan error
}

// Prepare defines the resources and grants the operator its permissions.
func Prepare(ctx context.Context, admin *rest.Config) error {
	c, err := newClient(admin)
	if err != nil {
		return err
	}
	return manifests.Install(ctx, c)
}

func newClient(config *rest.Config) (*client.Cluster, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// Play runs a scenario with a namespace and an operator of its own, which it removes afterwards.
func Play(t *testing.T, cluster Cluster, s Scenario) {
	t.Helper()
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	c, err := newClient(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, Client: c, NS: s.Name, ctx: ctx, cluster: cluster, options: controller.Defaults()}
	w.options.MinInterval = 20 * time.Millisecond
	w.options.ShowFor, w.options.MismatchGrace = 500*time.Millisecond, 500*time.Millisecond
	if s.Options != nil {
		s.Options(&w.options)
	}
	w.must(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.NS}}))
	w.Start()
	defer w.Stop()
	defer w.clear()
	s.Play(w)
}

// Start starts the operator.
func (w *World) Start() {
	w.Helper()
	config := rest.CopyConfig(w.cluster.Operator)
	config.Wrap(w.before.wrap)
	config.Wrap(w.writes.Wrap)
	ctx, stop := context.WithCancel(w.ctx)
	mgr, err := controller.New(ctx, config, w.cluster.Base, w.options)
	if err != nil {
		w.Fatal(err)
	}
	w.stop, w.done = stop, make(chan error, 1)
	go func() { w.done <- mgr.Run(ctx) }()
}

// Stop stops it.
func (w *World) Stop() {
	w.Helper()
	w.stop()
	if err := <-w.done; err != nil {
		w.Error(err)
	}
}

func (w *World) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Eventually polls ask until it returns "".
func (w *World) Eventually(ask func() (missing string)) {
	w.Helper()
	optest.Eventually(w.T, 2*time.Minute, ask)
}

// Writes returns what the operator has written since the last call, without events and leases.
func (w *World) Writes() []string { return w.writes.Take() }

// Idle waits until writes have stopped, and then fails the test if the operator writes.
func (w *World) Idle() {
	w.Helper()
	w.writes.Idle(w.T, w.quiet(), w.cluster.Idle)
}

func (w *World) settle() {
	w.Helper()
	w.writes.Settle(w.T, w.quiet())
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
