package loop

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	rtqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	rtclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	rtreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Client is what the reconcilers use of a system's client. Get reads from the cache.
type Client interface {
	Get(ctx context.Context, name types.NamespacedName, into *corev1.ConfigMap) error
	// Patch sends the difference between base and changed as a merge patch.
	Patch(ctx context.Context, changed, base *corev1.ConfigMap) error
}

// Reconciler is the work of a controller, the same for all systems.
type Reconciler func(ctx context.Context, c Client, name types.NamespacedName) error

// Setup is how a controller is set up.
type Setup struct {
	Workers int
	// Resync is how often all objects are reconciled anew; zero means the system's default.
	Resync    time.Duration
	Reconcile Reconciler
}

// System is a framework, or a mixture of two.
type System struct {
	Name string
	// Run runs a controller of all ConfigMaps until ctx is done.
	Run func(ctx context.Context, config *rest.Config, s Setup) error
	// Feed runs a controller whose only source adds those keys once.
	Feed func(ctx context.Context, config *rest.Config, s Setup, keys []types.NamespacedName) error
}

// Systems are compared; the first is what the others are compared with.
var Systems = []System{
	{"controller-runtime", theirs(false), feedTheirs(false)},
	{"controller-runtime, our parts", theirs(true), feedTheirs(true)},
	{"Flyball", ours, feedOurs},
}

// theirs is controller-runtime, with our queue, cache and client if asked for.
func theirs(parts bool) func(context.Context, *rest.Config, Setup) error {
	return func(ctx context.Context, config *rest.Config, s Setup) error {
		return runTheirs(ctx, config, s, parts, func(b *ctrl.Builder) { b.For(&corev1.ConfigMap{}) })
	}
}

func feedTheirs(parts bool) func(context.Context, *rest.Config, Setup, []types.NamespacedName) error {
	return func(ctx context.Context, config *rest.Config, s Setup, keys []types.NamespacedName) error {
		feed := source.Func(
			func(_ context.Context, q rtqueue.TypedRateLimitingInterface[rtreconcile.Request]) error {
				go func() {
					for _, key := range keys {
						q.Add(rtreconcile.Request{NamespacedName: key})
					}
				}()
				return nil
			},
		)
		return runTheirs(ctx, config, s, parts, func(b *ctrl.Builder) { b.Named("feed").WatchesRawSource(feed) })
	}
}

// runTheirs runs a controller whose sources watch sets.
func runTheirs(
	ctx context.Context, config *rest.Config, s Setup, parts bool, watch func(b *ctrl.Builder),
) error {
	mgr, err := theirManager(config, s, parts)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).WithOptions(theirOptions(s, parts))
	watch(b)
	if err := b.Complete(theirReconciler(mgr, s)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func theirManager(config *rest.Config, s Setup, parts bool) (ctrl.Manager, error) {
	ctrl.SetLogger(klog.Background())
	o := ctrl.Options{Metrics: server.Options{BindAddress: "0"}}
	if s.Resync > 0 {
		o.Cache = cache.Options{SyncPeriod: &s.Resync}
	}
	if parts {
		o.NewCache, o.NewClient = controllerruntime.NewCache, controllerruntime.NewClient
	}
	return ctrl.NewManager(config, o)
}

func theirOptions(s Setup, parts bool) controller.Options {
	o := controller.Options{MaxConcurrentReconciles: s.Workers}
	if parts {
		o.NewQueue = controllerruntime.NewQueue[rtreconcile.Request]
	}
	return o
}

func theirReconciler(mgr ctrl.Manager, s Setup) rtreconcile.Func {
	c := theirClient{mgr.GetClient()}
	return func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, s.Reconcile(ctx, c, r.NamespacedName)
	}
}

type theirClient struct{ rtclient.Client }

func (c theirClient) Get(ctx context.Context, name types.NamespacedName, into *corev1.ConfigMap) error {
	return c.Client.Get(ctx, name, into)
}

func (c theirClient) Patch(ctx context.Context, changed, base *corev1.ConfigMap) error {
	return c.Client.Patch(ctx, changed, rtclient.MergeFrom(base))
}

// ours is Flyball with its default options, and with metrics as controller-runtime has them.
func ours(ctx context.Context, config *rest.Config, s Setup) error {
	return runOurs(ctx, config, s, func(b *builder.Builder) { b.For(&corev1.ConfigMap{}) })
}

func feedOurs(ctx context.Context, config *rest.Config, s Setup, keys []types.NamespacedName) error {
	return runOurs(ctx, config, s, func(b *builder.Builder) { b.Named("feed").WatchesRawSource(feed(keys)) })
}

// runOurs runs a controller whose sources watch sets.
func runOurs(ctx context.Context, config *rest.Config, s Setup, watch func(b *builder.Builder)) error {
	mgr, err := ourManager(config, s)
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).WithOptions(ourOptions(s))
	watch(b)
	if err := b.Complete(ourReconciler(mgr, s)); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// feed is a source that adds its keys once.
type feed []types.NamespacedName

func (f feed) Run(_ context.Context, out *reconcile.Sink[reconcile.Request], synced func()) error {
	to := out.For(workqueue.Cause{Event: "Fed"})
	for _, key := range f {
		to.Add(reconcile.Request{NamespacedName: key})
	}
	synced()
	return nil
}

// Repeats implements reconcile.Source.
func (f feed) Repeats() bool { return false }

func (feed) Health() error  { return nil }
func (feed) String() string { return "feed" }

func ourManager(config *rest.Config, s Setup) (*manager.Manager, error) {
	o := manager.Options{Metrics: metrics.New()}
	o.Informers.Resync = s.Resync
	return manager.New(config, o)
}

func ourOptions(s Setup) reconcile.Options[reconcile.Request] {
	return reconcile.Options[reconcile.Request]{Workers: s.Workers}
}

func ourReconciler(mgr *manager.Manager, s Setup) reconcile.Func[reconcile.Request] {
	c := ourClient{mgr.GetClient()}
	return func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, s.Reconcile(ctx, c, r.NamespacedName)
	}
}

type ourClient struct{ client.Client }

func (c ourClient) Get(ctx context.Context, name types.NamespacedName, into *corev1.ConfigMap) error {
	return c.Client.Get(ctx, name, into)
}

func (c ourClient) Patch(ctx context.Context, changed, base *corev1.ConfigMap) error {
	return c.Client.Patch(ctx, changed, client.MergeFrom(base))
}
