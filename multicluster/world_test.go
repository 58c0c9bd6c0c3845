package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

type (
	auditEntry = audit.Entry
	matching   = client.MatchingFields
)

// site is the API server of one cluster.
type site struct {
	*localapi.Server
	log *audit.Log

	mu      sync.Mutex
	verdict func(ctx context.Context, r *gate.Request) gate.Verdict
}

// newSite starts a cluster's server. It is closed at the end of the test.
func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{log: &audit.Log{}}
	var err error
	s.Server, err = localapi.New(
		localapi.Options{
			Audit: s.log, NoKubernetesService: true,
			Gate: gate.Funcs{OnRequest: s.onRequest, OnFrame: s.onFrame},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) onRequest(ctx context.Context, r *gate.Request) gate.Verdict {
	s.mu.Lock()
	verdict := s.verdict
	s.mu.Unlock()
	if verdict == nil {
		return gate.Verdict{}
	}
	return verdict(ctx, r)
}

// onFrame ends watches while there is a verdict.
func (s *site) onFrame(context.Context, *gate.Request, gate.Frame) gate.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdict == nil {
		return gate.Verdict{}
	}
	return gate.Verdict{Action: gate.Close}
}

// setVerdict sets the verdict on all requests from now on; nil lets all requests pass. A watch ends when it next sends
// an event.
func (s *site) setVerdict(verdict func(ctx context.Context, r *gate.Request) gate.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdict = verdict
}

// neverAnswer is a verdict: the request gets no answer.
func neverAnswer(ctx context.Context, _ *gate.Request) gate.Verdict {
	<-ctx.Done()
	return gate.Verdict{Action: gate.Drop}
}

// dropConnection is a verdict: the connection breaks.
func dropConnection(context.Context, *gate.Request) gate.Verdict {
	return gate.Verdict{Action: gate.Drop}
}

// client returns a client of the test's own, independent of the fleet.
func (s *site) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// create makes config maps in the cluster.
func (s *site) create(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := s.client(t).CoreV1().ConfigMaps("default").Create(t.Context(), configMap(name),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// manualProvider is a provider that the test controls.
type manualProvider struct {
	// fleet receives the argument of Run. Capacity 1: Run sends, the test receives.
	fleet chan multicluster.Fleet
}

func newManualProvider() *manualProvider {
	return &manualProvider{fleet: make(chan multicluster.Fleet, 1)}
}

func (*manualProvider) Name() string { return "manual" }

func (*manualProvider) Health() error { return nil }

func (h *manualProvider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	fleet.Synced()
	h.fleet <- fleet
	<-ctx.Done()
	return nil
}

// world is a local manager with a fleet, and the test's handles on both.
type world struct {
	*multicluster.Manager
	local     *manager.Manager
	localSite *site
	provider  *manualProvider
	logs      *logs
	fleet     multicluster.Fleet

	stop context.CancelFunc
	// done gets the result of the manager's Run. Capacity 1.
	done chan error
}

// newWorld makes a fleet whose clusters the test announces. Complete controllers, then start it.
func newWorld(t testing.TB, o multicluster.Options, m manager.Options) *world {
	t.Helper()
	w := &world{localSite: newSite(t), provider: newManualProvider(), logs: &logs{}, done: make(chan error, 1)}
	var err error
	if w.local, err = manager.New(w.localSite.RESTConfig(), m); err != nil {
		t.Fatal(err)
	}
	o.Providers = append(o.Providers, w.provider)
	if w.Manager, err = multicluster.New(w.local, o); err != nil {
		t.Fatal(err)
	}
	return w
}

// start runs the manager until the end of the test or a call of end.
func (w *world) start(t testing.TB) {
	t.Helper()
	ctx, stop := context.WithCancel(
		klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w.logs)))),
	)
	w.stop = stop
	go func() { w.done <- w.local.Run(ctx) }()
	w.fleet = <-w.provider.fleet
	t.Cleanup(func() {
		if w.stop != nil {
			w.end(t)
		}
	})
}

// startRecording returns a running world with one controller, which records its requests, and a site with a config map
// x, which can join.
func startRecording(t testing.TB) (*world, *recorder, *site) {
	t.Helper()
	w, r := newWorld(t, multicluster.Options{}, manager.Options{}), &recorder{}
	w.complete(t, r)
	w.start(t)
	s := newSite(t)
	s.create(t, "x")
	return w, r, s
}

// end stops the manager and waits for it.
func (w *world) end(t testing.TB) {
	t.Helper()
	w.stop()
	w.stop = nil
	if err := <-w.done; err != nil {
		t.Error("run:", err)
	}
}

// join announces a cluster.
func (w *world) join(t testing.TB, name string, s *site) { w.joinAs(t, name, "1", s, nil) }

func (w *world) joinAs(t testing.TB, name, identity string, s *site, labels map[string]string) {
	t.Helper()
	var config *rest.Config
	if s != nil {
		config = s.RESTConfig()
	}
	if err := w.fleet.Join(
		multicluster.Announcement{Name: name, Identity: identity, Config: config, Labels: labels},
	); err != nil {
		t.Fatal(err)
	}
}

// states returns all clusters with their states: "a Live, b Joining".
func (w *world) states() string {
	var all []string
	for _, c := range w.Clusters() {
		all = append(all, c.Name+" "+c.State.String())
	}
	return strings.Join(all, ", ")
}

// wantStates checks the states, in a bubble, once all goroutines are blocked.
func (w *world) wantStates(t testing.TB, what, want string) {
	t.Helper()
	synctest.Wait()
	if got := w.states(); got != want {
		t.Errorf("%s: clusters %q, want %q", what, got, want)
	}
}

// logs collects the lines of the process's log.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSpace(string(p)))
	return len(p), nil
}

// forget drops all lines.
func (l *logs) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = nil
}

// with returns the lines that have all these parts.
func (l *logs) with(parts ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			found = append(found, line)
		}
	}
	return found
}

// recorder is a reconciler that records its requests.
type recorder struct {
	mu   sync.Mutex
	list []string
	// then is called after that, if not nil.
	then func(ctx context.Context, r multicluster.Request) (reconcile.Result, error)
}

func (r *recorder) Reconcile(ctx context.Context, request multicluster.Request) (reconcile.Result, error) {
	r.mu.Lock()
	r.list = append(r.list, request.String())
	then := r.then
	r.mu.Unlock()
	if then != nil {
		return then(ctx, request)
	}
	return reconcile.Result{}, nil
}

// take returns the requests since the last call, sorted, in a bubble.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.list
	r.list = nil
	slices.Sort(got)
	return got
}

func (r *recorder) want(t testing.TB, what string, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("%s: reconciled %q, want %q", what, got, want)
	}
}

// of returns how often a request was reconciled. The caller holds the lock.
func (r *recorder) of(request string) (n int) {
	for _, each := range r.list {
		if each == request {
			n++
		}
	}
	return n
}

// clusterOf returns the cluster in ctx.
func clusterOf(ctx context.Context) (*multicluster.Cluster, error) {
	c, ok := multicluster.ClusterFromContext(ctx)
	if !ok {
		return nil, errors.New("there is no cluster in the context")
	}
	return c, nil
}

// complete builds a controller of config maps.
func (w *world) complete(t testing.TB, r reconcile.Reconciler[multicluster.Request]) {
	t.Helper()
	if err := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).Complete(r); err != nil {
		t.Fatal(err)
	}
}

// writes returns the accepted writes in the cluster's audit log: "create default/a".
func (s *site) writes() (all []string) {
	for _, e := range s.log.Writes() {
		if e.Code < 300 {
			all = append(all, fmt.Sprintf("%s %s/%s", e.Verb, e.Namespace, e.Name))
		}
	}
	return all
}
