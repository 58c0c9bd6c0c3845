package manager_test

import (
	"context"
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

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// world is an API server in memory, and the log of its requests.
type world struct {
	server *localapi.Server
	audit  *audit.Log

	mu   sync.Mutex
	veto func(*gate.Request) gate.Verdict // nil lets all requests pass
	// answers and frames decide about answers and frames of watches; nil lets them pass. They are set before anything
	// runs.
	answers func(*gate.Request, gate.Answer) gate.Verdict
	frames  func(context.Context, gate.Frame)
	// cuts reports whether a watch ends before its next frame; nil means never. It is set before anything runs.
	cuts func(*gate.Request) bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{audit: &audit.Log{}}
	var err error
	w.server, err = localapi.New(localapi.Options{Audit: w.audit, Gate: gate.Funcs{
		OnRequest: w.judge,
		OnAnswer: func(_ context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
			if w.answers == nil {
				return gate.Verdict{}
			}
			return w.answers(r, a)
		},
		OnFrame: func(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
			if w.frames != nil {
				w.frames(ctx, f)
			}
			if w.cuts != nil && w.cuts(r) {
				return gate.Verdict{Action: gate.Close}
			}
			return gate.Verdict{}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) judge(_ context.Context, r *gate.Request) gate.Verdict {
	w.mu.Lock()
	veto := w.veto
	w.mu.Unlock()
	if veto == nil {
		return gate.Verdict{}
	}
	return veto(r)
}

// refuse sets the function that decides about requests from now on; nil lets all pass.
func (w *world) refuse(veto func(*gate.Request) gate.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.veto = veto
}

// leases refuses the requests for leases, and lets the others pass.
func leases(r *gate.Request) gate.Verdict {
	if r.Resource == "leases" {
		return gate.Verdict{Action: gate.Drop}
	}
	return gate.Verdict{}
}

func (w *world) manager(t *testing.T, o manager.Options) *manager.Manager {
	t.Helper()
	m, err := manager.New(w.server.RESTConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// writes returns the successful writes to the resources, one line each.
func (w *world) writes(resources ...string) (lines []string) {
	for _, e := range w.audit.Writes() {
		for _, r := range resources {
			if e.Resource == r {
				lines = append(lines, e.String())
			}
		}
	}
	return lines
}

// clientset returns client-go's clientset of a manager's config.
func clientset(m interface{ GetConfig() *rest.Config }) kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(m.GetConfig())
}

type life struct {
	*manager.Manager
	t    *testing.T
	stop context.CancelFunc
	done chan error
	logs *logs
}

func live(t *testing.T, m *manager.Manager) *life {
	logs := &logs{}
	ctx, stop := context.WithCancel(
		klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logs)))),
	)
	l := &life{Manager: m, t: t, stop: stop, done: make(chan error, 1), logs: logs}
	go func() { l.done <- m.Run(ctx) }()
	synctest.Wait()
	return l
}

// end stops the manager and returns Run's error.
func (l *life) end() error {
	l.stop()
	return <-l.done
}

func (l *life) mustEnd() {
	l.t.Helper()
	if err := l.end(); err != nil {
		l.t.Error("run:", err)
	}
}

// logs collects the log at verbosity 0, one line for each call of Write.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logs) with(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// onConfigMaps adds a controller of ConfigMaps to the manager.
func onConfigMaps(t *testing.T, m *manager.Manager, name string,
	f reconcile.Func[reconcile.Request],
) *reconcile.Controller[reconcile.Request] {
	t.Helper()
	c := reconcile.New(name, f, reconcile.Options[reconcile.Request]{Metrics: m.QueueMetrics()})
	follow(t, m, c)
	return c
}

// follow makes a controller watch ConfigMaps, and adds it to the manager.
func follow(t *testing.T, m *manager.Manager, c *reconcile.Controller[reconcile.Request]) {
	t.Helper()
	maps, err := informer.For[*corev1.ConfigMap](m.Informers())
	if err != nil {
		t.Fatal(err)
	}
	feed(t, m, c, maps)
}

// feed makes a controller watch the objects of an informer, and adds it to the manager.
func feed(t *testing.T, m *manager.Manager, c *reconcile.Controller[reconcile.Request],
	maps informer.Informer[*corev1.ConfigMap],
) {
	t.Helper()
	if err := c.Watch(source.Kind(maps, handler.EnqueueObject[*corev1.ConfigMap]())); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(c); err != nil {
		t.Fatal(err)
	}
}

func (w *world) create(t *testing.T, m *manager.Manager, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	maps := clientset(m).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runnable is a manager.Runnable with a name, optional leadership and optional health.
type runnable struct {
	name   string
	run    func(context.Context) error
	free   bool // needs no leadership
	health func() error
}

func (r runnable) Name() string                  { return r.name }
func (r runnable) Run(ctx context.Context) error { return r.run(ctx) }
func (r runnable) NeedLeaderElection() bool      { return !r.free }
func (r runnable) Health() error {
	if r.health == nil {
		return nil
	}
	return r.health()
}

func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
