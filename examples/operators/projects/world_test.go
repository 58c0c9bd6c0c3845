package main

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

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// World is a cluster on which the operator and a host of control planes run.
type World struct {
	*optest.World
	Op   *controller.Operator
	Host *host

	on       optest.Cluster
	scenario Scenario
	options  controller.Options
	// idle is how long there must be no write when there is nothing to do, and soon how long something may take that
	// nothing delays.
	idle, soon time.Duration
	seen       *history
	stop       func()
	stopHost   func()
	// secrets are the requests of a controller of Secrets in all control planes. It writes into each Secret where the
	// Secret is.
	mu      sync.Mutex
	secrets []string
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

// Play plays the scenario. Afterwards there are no Projects.
func (s Scenario) Play(t *testing.T, on optest.Cluster) {
	t.Helper()
	w := &World{World: optest.NewWorld(t, newClient(t, on.Admin)), on: on, scenario: s, Host: newHost()}
	w.idle, w.soon = time.Hour, time.Second
	if on.Real {
		w.idle, w.soon = time.Second, 15*time.Second
	}
	w.options = controller.Options{
		Poll: 100 * time.Millisecond, PurgeTimeout: 6 * time.Second,
		ForceAfter: 3 * time.Second, RequestTimeout: time.Second,
	}
	if s.Options != nil {
		s.Options(&w.options)
	}
	stopWatch := w.watch()
	w.StartHost()
	w.Start()
	defer func() {
		w.clear()
		w.Stop()
		w.StopHost()
		stopWatch()
		w.Must(w.Host.Close())
	}()
	s.Does(w)
}

// watch starts to record the states of Projects.
func (w *World) watch() (stop func()) {
	w.Helper()
	w.seen = &history{of: map[string][]string{}}
	scheme, err := controller.NewScheme()
	w.Must(err)
	factory, err := informer.NewFactory(w.on.Admin, informer.FactoryOptions{Scheme: scheme})
	w.Must(err)
	projects, err := informer.For[*api.Project](factory)
	w.Must(err)
	_, err = projects.AddHandler(informer.Handler[*api.Project]{
		OnAdd:    func(p *api.Project, _ bool) { w.seen.note(p) },
		OnUpdate: func(_, p *api.Project) { w.seen.note(p) },
	}, informer.HandlerOptions{MaxLag: -1})
	w.Must(err)
	return w.Go(factory.Run)
}

// Start starts the operator, with a controller of Secrets beside its own.
func (w *World) Start() {
	w.Helper()
	config := rest.CopyConfig(w.on.Operator)
	config.Wrap(w.Host.Wrap)
	config.Wrap(w.Wrap)
	base := ctrl.Options{LeaderElection: manager.LeaderElection{
		Enabled: w.scenario.Elect, Namespace: operator.Namespace, Name: operator.Name,
	}}
	var err error
	w.Op, err = controller.New(config, base, w.options)
	w.Must(err)
	w.Must(
		multicluster.ControllerManagedBy(w.Op.Fleet).For(&corev1.Secret{}).Complete(
			reconcile.Func[multicluster.Request](w.secret),
		),
	)
	w.stop = w.Go(w.Op.Run)
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
	w.stopHost = w.Go(func(ctx context.Context) error { return w.Host.Run(ctx, w.on.Admin) })
}

// StopHost stops the host. The control planes stay, and new ProjectControlPlanes are not handled.
func (w *World) StopHost() {
	w.Helper()
	if w.stopHost != nil {
		w.stopHost()
		w.stopHost = nil
	}
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
	w.Must(w.Create(w.Ctx, p))
	return p
}

// Reason waits until the Project's condition Ready has a reason, and returns the Project.
func (w *World) Reason(name, reason string) *api.Project {
	w.Helper()
	p := &api.Project{}
	w.Eventually(func() string {
		w.Must(w.Get(w.Ctx, client.ObjectKey{Name: name}, p))
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
	return newClient(w.T, w.Host.Server(name).RESTConfig())
}

// Remove deletes a Project and waits until it is gone.
func (w *World) Remove(name string) {
	w.Helper()
	w.Must(w.Delete(w.Ctx, &api.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	w.IsGone(name)
}

// IsGone waits until there is no Project, no control plane and no cluster of that name.
func (w *World) IsGone(name string) {
	w.Helper()
	w.Eventually(func() string {
		for _, obj := range []client.Object{&api.Project{}, &infrastructure.ProjectControlPlane{}} {
			if err := w.Get(w.Ctx, client.ObjectKey{Name: name}, obj); !apierrors.IsNotFound(err) {
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
	w.Must(w.List(w.Ctx, &list))
	for _, p := range list.Items {
		w.Host.Silence(p.Name, false)
		w.Must(client.IgnoreNotFound(w.Delete(w.Ctx, &p)))
	}
	for _, p := range list.Items {
		w.IsGone(p.Name)
	}
}

// Idle waits until writes have stopped, and then fails the test if the operator writes.
func (w *World) Idle() {
	w.Helper()
	w.World.Idle(time.Second, w.idle)
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
