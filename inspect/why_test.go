package inspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/predicate"
	"github.com/flyball-dev/flyball/workqueue"
)

// sick is a program with something wrong, and what Why says of the ConfigMap default/a a minute after it was updated.
type sick struct {
	name string
	user string
	// options and build change the manager and the controller.
	options func(*manager.Options)
	build   func(m *manager.Manager, b *builder.Builder)
	do      func(ctx context.Context, c client.Client) (reconcile.Result, error)
	want    []string
	not     string // what Why does not say; empty: anything
	unwell  string // what the page and flyball top show; empty: anything
}

var (
	// held is a lease that another process has just renewed.
	held = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "lease"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))),
		},
	}
	reading = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reading"}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
	}}}
	readers = &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reading"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "reader"}},
	}
)

var errFull = errors.New("the disk is full")

var patients = []sick{
	{
		name: "a predicate that drops too much",
		build: func(_ *manager.Manager, b *builder.Builder) {
			b.WithEventFilter(builder.PredicateFunc(func(e predicate.Event[client.Object]) bool {
				return e.Type != predicate.Update
			}))
		},
		want: []string{"controller configmap made no key of the last event (Update, version 30): a predicate dropped"},
	},
	{
		name: "a predicate that panics",
		build: func(_ *manager.Manager, b *builder.Builder) {
			b.WithEventFilter(builder.PredicateFunc(func(predicate.Event[client.Object]) bool {
				panic("no such label")
			}))
		},
		want:   []string{"handler configmap of configmaps has panicked 2 times: the log has the stacks"},
		unwell: "handler configmap has panicked 2 times: the log has the stacks",
	},
	{
		name: "no permission to read",
		user: "nobody",
		want: []string{"the first list has not succeeded", `cannot list resource "configmaps"`},
	},
	{
		name: "no permission to write",
		user: "reader",
		do: func(ctx context.Context, c client.Client) (reconcile.Result, error) {
			return reconcile.Result{}, c.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "made"},
			})
		},
		want: []string{`cannot create resource "secrets"`, "will reconcile default/a in"},
	},
	{
		name: "a handler that blocks",
		build: func(m *manager.Manager, _ *builder.Builder) {
			inf, err := informer.For[*corev1.ConfigMap](m.Informers())
			if err != nil {
				panic(err)
			}
			_, err = inf.AddHandler(informer.Handler[*corev1.ConfigMap]{
				OnAdd: func(*corev1.ConfigMap, bool) { time.Sleep(2 * time.Minute) },
			}, informer.HandlerOptions{Name: "slow"})
			if err != nil {
				panic(err)
			}
		},
		want: []string{"handler slow of configmaps has been busy for 1m", "events wait for it"},
	},
	{
		name: "a key in backoff",
		build: func(_ *manager.Manager, b *builder.Builder) {
			b.WithOptions(reconcile.Options[reconcile.Request]{
				RateLimiter: workqueue.NewExponentialRateLimiter[reconcile.Request](
					workqueue.ExponentialOptions{Base: time.Hour, Max: time.Hour}),
			})
		},
		do: func(context.Context, client.Client) (reconcile.Result, error) { return reconcile.Result{}, errFull },
		want: []string{
			"controller configmap will reconcile default/a in 59m", "(Retry, attempt ", "the disk is full",
		},
	},
	{
		name: "a cache with a selector",
		options: func(o *manager.Options) {
			o.Caches = []client.CacheOf{{
				Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{LabelSelector: "app=web"},
			}}
		},
		want: []string{`the cache of configmaps holds objects with the labels "app=web" only; this one has "app=db"`},
	},
	{
		name:    "a cache of another namespace",
		options: func(o *manager.Options) { o.Informers.Namespaces = []string{"kube-system"} },
		want:    []string{"the cache of configmaps holds the namespaces kube-system only"},
	},
	{
		name: "a second cache, of another namespace",
		build: func(m *manager.Manager, _ *builder.Builder) {
			o := informer.InformerOptions{Namespaces: []string{"kube-system"}}
			if _, err := informer.ForOptions[*corev1.ConfigMap](m.Informers(), o); err != nil {
				panic(err)
			}
		},
		want: []string{"controller configmap reconciled default/a 1m0s ago: done"},
		not:  "only",
	},
	{
		name: "a second cache, of another name",
		build: func(m *manager.Manager, _ *builder.Builder) {
			o := informer.InformerOptions{FieldSelector: "metadata.name=certificate"}
			if _, err := informer.ForOptions[*corev1.ConfigMap](m.Informers(), o); err != nil {
				panic(err)
			}
		},
		want: []string{"controller configmap reconciled default/a 1m0s ago: done"},
		not:  "only",
	},
	{
		name: "a worker that hangs",
		do: func(ctx context.Context, _ client.Client) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		},
		want: []string{
			"controller configmap has been reconciling default/a for 1m",
			"will reconcile default/a once more because of Update configmaps default/a, version 30",
		},
	},
	{
		name: "a key that is given up",
		do: func(context.Context, client.Client) (reconcile.Result, error) {
			return reconcile.Result{}, reconcile.Terminal(errFull)
		},
		want: []string{"controller configmap gave up on default/a", "the disk is full"},
	},
	{
		name: "a process that does not lead",
		options: func(o *manager.Options) {
			o.LeaderElection = manager.LeaderElection{Enabled: true, Namespace: "default", Name: "lease"}
		},
		want: []string{"controller configmap holds its 1 keys back until this process leads"},
	},
	{
		name: "nothing is wrong",
		want: []string{"controller configmap reconciled default/a 1m0s ago: done"},
	},
}

func TestWhy(t *testing.T) {
	for _, p := range patients {
		t.Run(p.name, func(t *testing.T) { synctest.Test(t, p.examine) })
	}
}

func (p *sick) examine(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "a", Labels: map[string]string{"app": "db"},
	}}
	api := localapi.NewTestWith(t, localapi.Options{RBAC: true}, config, held, readers, reading)
	user := kubernetes.NewForConfigOrDie(api.RESTConfig())
	restConfig := api.RESTConfig()
	if p.user != "" {
		restConfig = api.RESTConfigFor(auth.User{Name: p.user, Groups: []string{"system:authenticated"}})
	}
	i := inspect.New(inspect.Options{})
	o := manager.Options{Inspect: i}
	if p.options != nil {
		p.options(&o)
	}
	mgr, err := manager.New(restConfig, o)
	if err != nil {
		t.Fatal(err)
	}
	b := builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{})
	if p.build != nil {
		p.build(mgr, b)
	}
	if err := b.Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			if p.do == nil {
				return reconcile.Result{}, nil
			}
			return p.do(ctx, mgr.GetClient())
		})); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.NewKlogr().V(9)))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	time.Sleep(time.Second)
	config.Data = map[string]string{"new": "yes"}
	if _, err := user.CoreV1().ConfigMaps("default").Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	said := i.Why(t.Context(), mgr, inspect.Ref{Resource: "configmaps", Namespace: "default", Name: "a"})
	for _, want := range p.want {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%q is not in %q", want, said)
		}
	}
	if text := strings.Join(said, "\n"); p.not != "" && strings.Contains(text, p.not) {
		t.Errorf("%q is in %q", p.not, text)
	}
	if view := serve(i.Handler(mgr), "GET", "/inspect/api/pipeline").Body.String(); !strings.Contains(view, p.unwell) {
		t.Errorf("%q is not in %s", p.unwell, view)
	}
	t.Log(strings.Join(said, "\n"))
	stop()
	<-ended
	time.Sleep(2 * time.Minute) // until the handler that blocks has returned
}

// TestWhyWithoutHandlers: a kind that is only read has a cache, but its changes lead to no reconcile.
func TestWhyWithoutHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := metav1.ObjectMeta{Namespace: "default", Name: "a"}
		i := inspect.New(inspect.Options{})
		mgr := start(t, i, func(c client.Client) reconcile.Func[reconcile.Request] {
			return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, client.IgnoreNotFound(c.Get(ctx, req.NamespacedName, &corev1.Secret{}))
			}
		}, &corev1.ConfigMap{ObjectMeta: named}, &corev1.Secret{ObjectMeta: named})
		time.Sleep(time.Minute)
		said := i.Why(t.Context(), mgr, inspect.Ref{Resource: "secrets", Namespace: "default", Name: "a"})
		if len(said) != 1 || !strings.HasPrefix(said[0], "no controller of this process watches secrets; the cache") {
			t.Errorf("%q", said)
		}
	})
}
