package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/examples/operators/projects/manifests"
	"github.com/flyball-dev/flyball/examples/operators/projects/planes"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// Cluster is a cluster on which scenarios run.
type Cluster struct {
	// Admin may do everything, Operator only what its manifests grant. The manifests are applied.
	Admin, Operator *rest.Config
	// Idle is how long there must be no write when there is nothing to do.
	Idle time.Duration
	// Rounds is how often a Project comes and goes in the scenario rounds.
	Rounds int
	// Soon is how long something may take that nothing delays.
	Soon time.Duration
	// Base are the options of the operator's manager.
	Base ctrl.Options
}

// World is a cluster on which the operator and a host of control planes run, and the client of a scenario.
type World struct {
	*testing.T
	client.Client // the administrator's, which reads from the server
	Op            *controller.Operator
	Host          *planes.Host
	ctx           context.Context

	cluster  Cluster
	options  controller.Options
	writes   optest.Writes
	seen     *history
	stop     func()
	stopHost func()
	// secrets are the requests of a controller of Secrets in all control planes. It writes into each Secret where the
	// Secret is.
	mu      sync.Mutex
	secrets []string
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

// Play plays a scenario. Afterwards there are no Projects.
func Play(t *testing.T, cluster Cluster, s Scenario) {
	t.Helper()
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	c, err := newClient(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{T: t, Client: c, ctx: ctx, cluster: cluster, Host: planes.New()}
	w.options = controller.Options{
		Poll: 100 * time.Millisecond, PurgeTimeout: 6 * time.Second,
		ForceAfter: 3 * time.Second, RequestTimeout: time.Second,
	}
	if s.Options != nil {
		s.Options(&w.options)
	}
	watched := w.watch()
	w.StartHost()
	w.Start()
	defer func() {
		w.clear()
		w.Stop()
		w.StopHost()
		stop()
		<-watched
		w.must(w.Host.Close())
	}()
	s.Play(w)
}

// watch starts to record the states of Projects.
func (w *World) watch() (done chan struct{}) {
	w.Helper()
	w.seen = &history{of: map[string][]string{}}
	scheme, err := controller.NewScheme()
	w.must(err)
	factory, err := informer.NewFactory(w.cluster.Admin, informer.FactoryOptions{Scheme: scheme})
	w.must(err)
	projects, err := informer.For[*api.Project](factory)
	w.must(err)
	_, err = projects.AddHandler(informer.Handler[*api.Project]{
		OnAdd:    func(p *api.Project, _ bool) { w.seen.note(p) },
		OnUpdate: func(_, p *api.Project) { w.seen.note(p) },
	}, informer.HandlerOptions{MaxLag: -1})
	w.must(err)
	done = make(chan struct{}) // closed by the goroutine below when it ends
	go func() {
		defer close(done)
		_ = factory.Run(w.ctx)
	}()
	return done
}

// Start starts the operator, with a controller of Secrets beside its own.
func (w *World) Start() {
	w.Helper()
	config := rest.CopyConfig(w.cluster.Operator)
	config.Wrap(w.Host.Wrap)
	config.Wrap(w.writes.Wrap)
	var err error
	w.Op, err = controller.New(config, w.cluster.Base, w.options)
	w.must(err)
	w.must(
		multicluster.ControllerManagedBy(w.Op.Fleet).For(&corev1.Secret{}).Complete(
			reconcile.Func[multicluster.Request](w.secret),
		),
	)
	w.stop = w.inBackground(w.Op.Run)
}

// secret records the request, and writes into the Secret in which control plane it was found.
func (w *World) secret(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
	w.mu.Lock()
	w.secrets = append(w.secrets, r.String())
	w.mu.Unlock()
	c, ok := multicluster.ClusterFromContext(ctx)
	if !ok {
		return reconcile.Result{}, errors.New("there is no cluster in the context")
	}
	s := &corev1.Secret{}
	if err := c.Get(ctx, r.NamespacedName, s); err != nil || string(s.Data["project"]) == r.Cluster {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s.Data = map[string][]byte{"project": []byte(r.Cluster)}
	return reconcile.Result{}, c.Update(ctx, s)
}

// inBackground calls run in a goroutine. stop cancels it and waits.
func (w *World) inBackground(run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		w.Helper()
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

// Stop stops the operator.
func (w *World) Stop() {
	w.Helper()
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// StartHost starts the host of control planes.
func (w *World) StartHost() {
	w.stopHost = w.inBackground(func(ctx context.Context) error { return w.Host.Run(ctx, w.cluster.Admin) })
}

// StopHost stops the host. The control planes stay, and new ProjectControlPlanes are not handled.
func (w *World) StopHost() {
	w.Helper()
	if w.stopHost != nil {
		w.stopHost()
		w.stopHost = nil
	}
}

func (w *World) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Eventually polls ask until it returns "", for two minutes.
func (w *World) Eventually(ask func() (missing string)) {
	w.Helper()
	w.within(2*time.Minute, ask)
}

func (w *World) within(d time.Duration, ask func() (missing string)) {
	w.Helper()
	optest.Eventually(w.T, d, ask)
}

// Project creates a Project, with labels of the form "a=b".
func (w *World) Project(name string, labels ...string) *api.Project {
	w.Helper()
	p := &api.Project{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		p.Labels[key] = value
	}
	p.Spec.OwnerRef = api.OwnerRef{Kind: "Organization", Name: "acme"}
	w.must(w.Create(w.ctx, p))
	return p
}

// Reason waits until the Project's condition Ready has a reason, and returns the Project.
func (w *World) Reason(name, reason string) *api.Project {
	w.Helper()
	p := &api.Project{}
	w.Eventually(func() string {
		w.must(w.Get(w.ctx, client.ObjectKey{Name: name}, p))
		if c := conditions.Get(p.Status.Conditions, api.Ready); c == nil || c.Reason != reason {
			return fmt.Sprintf("project %s: Ready is %+v, want the reason %s", name, c, reason)
		}
		return ""
	})
	return p
}

// State waits until the fleet has a Project's cluster in that state.
func (w *World) State(name string, want multicluster.State) {
	w.Helper()
	w.Eventually(func() string { return w.state(name, want) })
}

func (w *World) state(name string, want multicluster.State) string {
	got, err := w.Op.Fleet.Status(name)
	if want == multicluster.Gone && errors.Is(err, multicluster.ErrClusterNotFound) || err == nil && got.State == want {
		return ""
	}
	return fmt.Sprintf("cluster %s is %s (%s), %v; want %s", name, got.State, got.Reason, err, want)
}

// Live creates Projects and waits until the fleet has them.
func (w *World) Live(names ...string) {
	w.Helper()
	for _, name := range names {
		w.Project(name)
	}
	for _, name := range names {
		w.State(name, multicluster.Live)
	}
}

// In returns the administrator's client of a control plane.
func (w *World) In(name string) client.Client {
	w.Helper()
	c, err := newClient(w.Host.Server(name).RESTConfig())
	w.must(err)
	return c
}

// Remove deletes a Project and waits until it is gone.
func (w *World) Remove(name string) {
	w.Helper()
	w.must(w.Delete(w.ctx, &api.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	w.IsGone(name)
}

// IsGone waits until there is no Project, no control plane and no cluster of that name.
func (w *World) IsGone(name string) {
	w.Helper()
	w.Eventually(func() string {
		for _, obj := range []client.Object{&api.Project{}, &infrastructure.ProjectControlPlane{}} {
			if err := w.Get(w.ctx, client.ObjectKey{Name: name}, obj); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%T %s is still there: %v, %v", obj, name, err, obj)
			}
		}
		if w.stopHost != nil && w.Host.Server(name) != nil {
			return "the control plane of " + name + " still runs"
		}
		return w.state(name, multicluster.Gone)
	})
}

// clear deletes what the scenario has left.
func (w *World) clear() {
	w.Helper()
	if w.stop == nil {
		w.Start()
	}
	var list api.ProjectList
	w.must(w.List(w.ctx, &list))
	for _, p := range list.Items {
		w.Host.Silence(p.Name, false)
		w.must(client.IgnoreNotFound(w.Delete(w.ctx, &p)))
	}
	for _, p := range list.Items {
		w.IsGone(p.Name)
	}
}

// Idle waits until writes have stopped, and then fails the test if the operator writes.
func (w *World) Idle() {
	w.Helper()
	w.writes.Idle(w.T, time.Second, w.cluster.Idle)
}

// history records the states of Projects.
type history struct {
	mu sync.Mutex
	// of has, by name and UID, the states of the condition ResourceCleanup in their order.
	of map[string][]string
}

func (h *history) note(p *api.Project) {
	c := conditions.Get(p.Status.Conditions, api.ResourceCleanup)
	if c == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key, state := p.Name, string(c.Status)+" "+c.Reason
	if all := h.of[key]; len(all) == 0 || all[len(all)-1] != state {
		h.of[key] = append(all, state)
	}
}

// Cleanup returns the states that the condition ResourceCleanup of a Project went through.
func (w *World) Cleanup(name string) string {
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	return strings.Join(w.seen.of[name], ", ")
}
