package controllerruntime_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// process is one of the managers, with a server of its own. Nothing is started.
type process struct {
	manager.Manager
	t      *testing.T
	ctx    context.Context
	name   string
	api    *localapi.Server
	direct client.Client
	start  func()
	stop   func() // and waits
	queue  func(string,
		workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// managerMakers are controller-runtime's manager, the same with our parts, and our manager.
var managerMakers = map[string]func(*rest.Config, manager.Options) (manager.Manager, error){
	"controller-runtime": manager.New,
	"our parts":          withParts(controllerruntime.NewCache),
	"our parts, lean":    withParts(controllerruntime.NewLeanCache),
	"our manager": func(config *rest.Config, o manager.Options) (manager.Manager, error) {
		m, err := controllerruntime.NewManager(config, o)
		if err != nil {
			return nil, err
		}
		return m, nil
	},
}

func withParts(newCache cache.NewCacheFunc) func(*rest.Config, manager.Options) (manager.Manager, error) {
	return func(config *rest.Config, o manager.Options) (manager.Manager, error) {
		o.NewCache, o.NewClient = newCache, controllerruntime.NewClient
		return manager.New(config, o)
	}
}

// bothManagers runs test in a bubble with controller-runtime's manager, the same with our parts, and our manager.
func bothManagers(t *testing.T, o manager.Options, test func(p *process), objects ...runtime.Object) {
	t.Helper()
	for name, newManager := range managerMakers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, err := localapi.New(localapi.Options{Audit: &audit.Log{}})
				if err != nil {
					t.Fatal(err)
				}
				defer api.Close()
				if err := api.Seed(t.Context(), objects...); err != nil {
					t.Fatal(err)
				}
				p := &process{t: t, name: name, api: api}
				if o.Metrics.BindAddress == "" {
					o.Metrics = server.Options{BindAddress: "0"}
				}
				o.Controller = config.Controller{SkipNameValidation: new(true)}
				o.Cache.DefaultWatchErrorHandler = quiet
				if p.Manager, err = newManager(api.RESTConfig(), o); err != nil {
					t.Fatal(err)
				}
				if p.direct, err = client.New(api.RESTConfig(), client.Options{}); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(name, "our parts") {
					p.queue = controllerruntime.NewQueue[reconcile.Request]
				}
				p.ctx, p.start, p.stop = switches(t, func(ctx context.Context) error { return p.Start(ctx) })
				defer p.stop()
				test(p)
			})
		})
	}
}

func (p *process) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// controls adds a controller of ConfigMaps that calls f.
func (p *process) controls(f func(ctx context.Context, name string) (reconcile.Result, error),
	opts ...builder.ForOption,
) {
	p.t.Helper()
	p.must(ctrl.NewControllerManagedBy(p).For(&corev1.ConfigMap{},
		opts...).WithOptions(controller.Options{NewQueue: p.queue}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Namespace != "a" {
				return reconcile.Result{}, nil
			}
			return f(ctx, r.Name)
		})))
}

// TestContextOutlivesTheReconcile: what a reconciler starts with its context goes on until the manager ends.
func TestContextOutlivesTheReconcile(t *testing.T) {
	bothManagers(t, manager.Options{}, func(p *process) {
		given := make(chan context.Context, 1)
		p.controls(func(ctx context.Context, _ string) (reconcile.Result, error) {
			given <- ctx
			return reconcile.Result{}, nil
		})
		p.start()
		ctx := <-given
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		later(time.Hour)
		if ctx.Err() != nil || child.Err() != nil || controller.ReconcileIDFromContext(ctx) == "" {
			p.t.Errorf("after the reconcile: %v, %v", ctx.Err(), child.Err())
		}
		p.stop()
		synctest.Wait()
		if ctx.Err() == nil || child.Err() == nil {
			p.t.Errorf("after the manager: %v, %v", ctx.Err(), child.Err())
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// TestPriorityOfEvents: initial objects and resyncs have a lower priority than changes. So have their retries.
func TestPriorityOfEvents(t *testing.T) {
	o := manager.Options{Cache: cache.Options{SyncPeriod: new(time.Minute)}}
	bothManagers(t, o, func(p *process) {
		begun := make(chan string, 100)
		turn := make(chan struct{})
		p.controls(func(_ context.Context, name string) (reconcile.Result, error) {
			begun <- name
			<-turn
			return reconcile.Result{}, nil
		})
		p.start()
		<-begun // One of the three is being worked on.
		p.must(p.direct.Create(p.ctx, configMap("a", "new", nil)))
		synctest.Wait()
		turn <- struct{}{}
		if name := <-begun; name != "new" {
			p.t.Errorf("%s goes before the new one", name)
		}
		for range 2 {
			turn <- struct{}{}
			<-begun
		}
		turn <- struct{}{}
		first := <-begun // A resync: all are repeated.
		later(10 * time.Second)
		changed := configMap("a", "new", nil)
		if first == "new" {
			changed = configMap("a", "one", nil)
		}
		changed.Data["x"] = "y"
		p.must(p.direct.Update(p.ctx, changed))
		synctest.Wait()
		turn <- struct{}{}
		if name := <-begun; name != changed.Name {
			p.t.Errorf("after a resync %s goes before %s, which has changed", name, changed.Name)
		}
		close(turn)
	}, namespace("a"), configMap("a", "one", nil), configMap("a", "two", nil), configMap("a", "three", nil))
}

// TestPredicates: predicates see the events that client-go delivers: the states before and after, initial lists,
// resyncs.
func TestPredicates(t *testing.T) {
	o := manager.Options{Cache: cache.Options{SyncPeriod: new(time.Minute)}}
	bothManagers(t, o, func(p *process) {
		var seen []string
		note := func(what string, obj client.Object) bool {
			if obj.GetNamespace() == "a" {
				seen = append(seen, what+" "+obj.GetName())
			}
			return true
		}
		spy := predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool {
				if e.IsInInitialList {
					return note("initial", e.Object)
				}
				return note("create", e.Object)
			},
			UpdateFunc: func(e event.UpdateEvent) bool {
				if e.ObjectOld == e.ObjectNew {
					return note("resync", e.ObjectNew)
				}
				if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
					return note("the same", e.ObjectNew)
				}
				return note("update", e.ObjectNew)
			},
			DeleteFunc: func(e event.DeleteEvent) bool { return note("delete", e.Object) },
		}
		reconciled := map[string]int{}
		p.controls(func(_ context.Context, name string) (reconcile.Result, error) {
			reconciled[name]++
			return reconcile.Result{}, nil
		}, builder.WithPredicates(spy,
			predicate.Or(predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})))
		p.start()
		later(time.Second)
		m := configMap("a", "x", nil)
		p.must(p.direct.Create(p.ctx, m))
		synctest.Wait()
		m.Data["not"] = "labels"
		p.must(p.direct.Update(p.ctx, m))
		synctest.Wait()
		m.Labels = map[string]string{"now": "labels"}
		p.must(p.direct.Update(p.ctx, m))
		synctest.Wait()
		p.must(p.direct.Delete(p.ctx, m))
		later(3 * time.Minute)
		want := []string{"initial one", "create x", "update x", "update x", "delete x", "resync one"}
		if len(seen) < 6 || !slices.Equal(seen[:6], want) {
			p.t.Errorf("seen %q, want %q", seen, want)
		}
		if reconciled["one"] != 1 || reconciled["x"] != 3 {
			p.t.Errorf("reconciled %v, want x when it came, had other labels, and went", reconciled)
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// TestPartsOfAManager checks what operators get from a manager, before and after its start.
func TestPartsOfAManager(t *testing.T) {
	bothManagers(t, manager.Options{}, func(p *process) {
		key := client.ObjectKey{Namespace: "a", Name: "one"}
		if p.GetScheme() == nil || p.GetConfig() == nil || p.GetRESTMapper() == nil || p.GetHTTPClient() == nil ||
			p.GetConverterRegistry() == nil {
			p.t.Error("a part is missing")
		}
		if p.GetLogger().GetSink() == nil || !*p.GetControllerOptions().SkipNameValidation {
			p.t.Error("the logger or the options of controllers are missing")
		}
		p.must(p.GetAPIReader().Get(p.ctx, key, &corev1.ConfigMap{}))
		p.must(p.GetAPIReader().List(p.ctx, &corev1.ConfigMapList{}))
		if err := p.GetClient().Get(p.ctx, key, &corev1.ConfigMap{}); err == nil ||
			err.Error() != (&cache.ErrCacheNotStarted{}).Error() {
			p.t.Errorf("a cached read before the start: %v", err)
		}
		ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
		defer cancel()
		if p.GetCache().WaitForCacheSync(ctx) {
			p.t.Error("synced before the start")
		}
		p.must(
			p.GetFieldIndexer().IndexField(p.ctx, &corev1.ConfigMap{}, "kind",
				func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["kind"]} }),
		)
		p.must(p.AddMetricsServerExtraHandler("/x", http.NotFoundHandler())) // Metrics are not served: it is logged.
		p.must(p.AddHealthzCheck("mine", func(*http.Request) error { return nil }))
		p.must(p.AddReadyzCheck("mine", func(*http.Request) error { return nil }))
		ran := make(chan string, 3)
		for _, name := range []string{"one", "two"} { // Of one type.
			p.must(p.Add(manager.RunnableFunc(func(ctx context.Context) error {
				ran <- name
				<-ctx.Done()
				return nil
			})))
		}
		p.start()
		<-ran
		<-ran
		<-p.Elected()
		p.must(p.Add(manager.RunnableFunc(func(context.Context) error {
			ran <- "late"
			return nil
		})))
		<-ran
		var list corev1.ConfigMapList
		p.must(p.GetClient().List(p.ctx, &list, client.MatchingFields{"kind": "one"}))
		if len(list.Items) != 1 {
			p.t.Errorf("%d by the index", len(list.Items))
		}
		if !p.GetCache().WaitForCacheSync(p.ctx) {
			p.t.Error("not synced")
		}
		//lint:ignore SA1019 Part of the interface.
		p.GetEventRecorderFor("me").Eventf(&list.Items[0], "Normal", "Seen", "%d times", 1)
		later(time.Second) // Both recorders name an event by object and time, and there is one storage of events.
		p.GetEventRecorder("me").Eventf(&list.Items[0], nil, "Normal", "Heard", "Hearing", "%d times", 2)
		later(time.Minute)
		var events corev1.EventList
		p.must(p.direct.List(p.ctx, &events, client.InNamespace("a")))
		reasons := map[string]bool{}
		for _, e := range events.Items {
			reasons[e.Reason] = true
		}
		if !reasons["Seen"] || !reasons["Heard"] {
			p.t.Errorf("events: %v", reasons)
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// TestLeases: the lease has the name and times of the options, only its holder works, and a holder that stops releases
// it.
func TestLeases(t *testing.T) {
	o := manager.Options{
		Scheme: clientscheme.Scheme, Client: client.Options{FieldOwner: "operator"},
		LeaderElection: true, LeaderElectionID: "op", LeaderElectionNamespace: "a", LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(40 * time.Second), RenewDeadline: new(20 * time.Second), RetryPeriod: new(5 * time.Second),
		GracefulShutdownTimeout: new(time.Minute),
	}
	bothManagers(t, o, func(p *process) {
		held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "op"}}
		held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds = new("another"), new(int32(40))
		held.Spec.RenewTime, held.Spec.AcquireTime = new(metav1.NowMicro()), new(metav1.NowMicro())
		p.must(p.direct.Create(p.ctx, held))
		work := make(chan string, 10)
		p.controls(func(ctx context.Context, name string) (reconcile.Result, error) {
			work <- name
			var m corev1.ConfigMap
			if err := p.GetClient().Get(ctx, client.ObjectKey{Namespace: "a", Name: name}, &m); err != nil {
				return reconcile.Result{}, err
			}
			m.Data["seen"] = "yes"
			return reconcile.Result{}, p.GetClient().Update(ctx, &m)
		})
		p.start()
		later(30 * time.Second)
		if len(work) > 0 || closed.Is(p.Elected()) {
			p.t.Error("works while another has the lease")
		}
		later(time.Minute)
		if len(work) == 0 || !closed.Is(p.Elected()) {
			p.t.Error("does not work when the lease has run out")
		}
		var m corev1.ConfigMap
		p.must(p.direct.Get(p.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &m))
		if m.Data["seen"] != "yes" {
			p.t.Errorf("written: %v", m.Data)
		}
		p.must(p.direct.Get(p.ctx, client.ObjectKeyFromObject(held), held))
		if *held.Spec.HolderIdentity == "another" || *held.Spec.LeaseDurationSeconds != 40 {
			p.t.Errorf("the lease: %+v", held.Spec)
		}
		p.stop()
		p.must(p.direct.Get(p.t.Context(), client.ObjectKeyFromObject(held), held))
		if held.Spec.HolderIdentity != nil && *held.Spec.HolderIdentity != "" {
			p.t.Errorf("not released: %+v", held.Spec)
		}
	}, namespace("a"), configMap("a", "one", nil))
}
