package ctrl_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/ctrl/controller"
	"github.com/flyball-dev/flyball/manager/ctrl/handler"
	"github.com/flyball-dev/flyball/manager/ctrl/predicate"
	theirs "github.com/flyball-dev/flyball/manager/ctrl/reconcile"
	"github.com/flyball-dev/flyball/manager/ctrl/source"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/event"
)

// seen records the requests of a controller.
type seen struct {
	mu   sync.Mutex
	keys []string
}

func (s *seen) Reconcile(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, r.String())
	return ctrl.Result{}, nil
}

func (s *seen) want(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.keys)
	if !slices.Equal(s.keys, want) {
		t.Errorf("%s: reconciled %q, want %q", what, s.keys, want)
	}
	s.keys = nil
}

// start runs a manager on an empty server until the test ends. add adds to it before.
func start(t *testing.T, add func(mgr ctrl.Manager) error) ctrl.Manager {
	t.Helper()
	server := localapi.NewTestWith(t, localapi.Options{NoKubernetesService: true})
	mgr, err := ctrl.NewManager(server.RESTConfig(), ctrl.Options{})
	if err == nil {
		err = add(mgr)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return mgr
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// A controller with the handlers, predicates, sources and options of controller-runtime.
func TestHandlersAndPredicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, outside := &seen{}, make(chan event.GenericEvent)
		mgr := start(t, func(mgr ctrl.Manager) error {
			toOwner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1.Node{})
			return ctrl.NewControllerManagedBy(mgr).Named("forms").
				Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{},
					builder.WithPredicates(predicate.LabelChangedPredicate{})).
				Watches(&corev1.Secret{}, toOwner).
				WatchesRawSource(source.Kind(mgr.GetCache(), &corev1.Service{},
					&handler.TypedEnqueueRequestForObject[*corev1.Service]{})).
				WatchesRawSource(source.Channel(outside, &handler.EnqueueRequestForObject{},
					source.WithPredicates[client.Object](predicate.NewPredicateFuncs(func(obj client.Object) bool {
						return obj.GetName() != "dropped"
					})))).
				WithEventFilter(predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}).
				WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
				Complete(r)
		})
		c, ctx := mgr.GetClient(), t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		cm := configMap("a")
		must(c.Create(ctx, cm))
		r.want(t, "create", "default/a")
		cm.Data = map[string]string{"k": "v"}
		must(c.Update(ctx, cm))
		r.want(t, "an update of the data")
		cm.Labels = map[string]string{"k": "v"}
		must(c.Update(ctx, cm))
		r.want(t, "an update of the labels", "default/a")
		must(c.Delete(ctx, cm))
		r.want(t, "delete")

		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		must(c.Create(ctx, node))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
		must(controllerutil.SetOwnerReference(node, secret, c.Scheme()))
		must(c.Create(ctx, secret))
		r.want(t, "an owner that has no namespace and is no controller", "/n")

		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		must(c.Create(ctx, service))
		r.want(t, "source.Kind", "default/web")

		outside <- event.GenericEvent{Object: configMap("dropped")}
		outside <- event.GenericEvent{Object: configMap("passed")}
		r.want(t, "source.Channel", "default/passed")
	})
}

// Every function is a runnable of its own, and Elected is closed when those that need leadership run.
func TestRunnableFuncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan int, 3)
		mgr := start(t, func(mgr ctrl.Manager) error {
			var errs []error
			for i := range 3 {
				errs = append(errs, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
					<-mgr.Elected()
					ran <- i
					<-ctx.Done()
					return nil
				})))
			}
			return errors.Join(errs...)
		})
		if len(ran) != 3 {
			t.Errorf("%d of 3 functions ran", len(ran))
		}
		if !mgr.GetCache().WaitForCacheSync(t.Context()) {
			t.Error("the caches are not filled")
		}
		if err := mgr.Remove(t.Context(), "manager.RunnableFunc-2"); err != nil {
			t.Error(err)
		}
	})
}

// named reconciles ConfigMaps, and not their names.
type named struct{ names []string }

func (n *named) Reconcile(_ context.Context, cm *corev1.ConfigMap) (ctrl.Result, error) {
	n.names = append(n.names, cm.Name)
	return ctrl.Result{RequeueAfter: time.Hour}, nil
}

func TestAsReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, func(ctrl.Manager) error { return nil }).GetClient()
		if err := c.Create(t.Context(), configMap("a")); err != nil {
			t.Fatal(err)
		}
		n := &named{}
		r := theirs.AsReconciler(c, n)
		for name, want := range map[string]time.Duration{"a": time.Hour, "missing": 0} {
			key := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}
			got, err := r.Reconcile(t.Context(), key)
			if err != nil || got.RequeueAfter != want || got.IsZero() != (want == 0) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
		if !slices.Equal(n.names, []string{"a"}) {
			t.Errorf("reconciled %q", n.names)
		}
	})
}

func TestTerminalError(t *testing.T) {
	for _, cause := range []error{nil, errors.New("a bad schedule")} {
		err := theirs.TerminalError(cause)
		if err == nil || !reconcile.IsTerminal(err) || !errors.Is(err, theirs.TerminalError(nil)) {
			t.Errorf("TerminalError(%v) = %v", cause, err)
		}
		if cause != nil && (!errors.Is(err, cause) || errors.Is(cause, err)) {
			t.Errorf("TerminalError(%v) does not wrap its cause", cause)
		}
	}
}
