//lint:file-ignore SA1019 Users write these idioms, the deprecated ones, too.

package idioms_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/authentication"
)

// Program

// `ctrl.Options{LeaderElection: true, LeaderElectionID: id}`: write `ctrl.Options{LeaderElection:
// manager.LeaderElection{Enabled: true, Name: id}}`; an empty namespace means kube-system, not the namespace of the Pod
func _() ctrl.Options { return ctrl.Options{LeaderElection: true, LeaderElectionID: "web.example.com"} }

// `ctrl.Options{Metrics: metricsserver.Options{BindAddress: addr}}`: write `ctrl.Options{Metrics: metrics.Registry,
// MetricsAddr: addr}`
func _() ctrl.Options { return ctrl.Options{Metrics: metricsserver.Options{BindAddress: ":8443"}} }

// `ctrl.Options{HealthProbeBindAddress: addr}`: write `ctrl.Options{HealthAddr: addr}`
func _() ctrl.Options { return ctrl.Options{HealthProbeBindAddress: ":8081"} }

// `ctrl.Options{WebhookServer: webhook.NewServer(options)}`: write `ctrl.Options{Webhook: options}`
func _(tlsOpts []func(*tls.Config)) ctrl.Options {
	return ctrl.Options{WebhookServer: webhook.NewServer(webhook.Options{Port: 9443, TLSOpts: tlsOpts})}
}

// `ctrl.Options{Cache: cache.Options{ByObject: …}}`: write `ctrl.Options{Caches: []client.CacheOf{{Object:
// &corev1.Pod{}, Informer: informer.InformerOptions{…}}}}`
func _(selector labels.Selector) ctrl.Options {
	ofPods := map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: selector}}
	return ctrl.Options{Cache: cache.Options{ByObject: ofPods}}
}

// `ctrl.Options{Cache: cache.Options{DefaultNamespaces: …}}`: write `ctrl.Options{Informers:
// informer.FactoryOptions{Namespaces: namespaces}}`
func _() ctrl.Options {
	return ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}}}
}

// `ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{DisableFor: objects}}}`: write
// `ctrl.Options{Client: client.Options{Uncached: objects}}`
func _() ctrl.Options {
	return ctrl.Options{
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
}

// `ctrl.SetLogger(zap.New(zap.UseDevMode(true)))`: write `ctrl.SetLogger` with a logger of your own, or nothing:
// klog writes to standard error
func _() { ctrl.SetLogger(zap.New(zap.UseDevMode(true))) }

// a runnable with a method `Start`: write `Run` as the name of the method
func _(mgr ctrl.Manager, r interface{ Start(context.Context) error }) error {
	return mgr.Add(manager.Runnable(r))
}

// `signals.SetupSignalHandler()`: write `ctrl.SetupSignalHandler()`
func _() context.Context { return signals.SetupSignalHandler() }

// `config.GetConfigOrDie()`: write `ctrl.GetConfigOrDie()`
func _() *rest.Config { return config.GetConfigOrDie() }

// `scheme.Builder{GroupVersion: gv}`: write `runtime.NewSchemeBuilder` of apimachinery
func _() *scheme.Builder { return &scheme.Builder{GroupVersion: schema.GroupVersion{Version: "v1"}} }

// `mgr.GetLogger()`: write `ctrl.Log`, or the context's logger in a reconcile and in a runnable
func _(mgr ctrl.Manager) logr.Logger { return mgr.GetLogger() }

// `mgr.GetCache().GetInformer(ctx, obj)`: write `informer.For` with `mgr.Informers()`
func _(ctx context.Context, mgr ctrl.Manager) (cache.Informer, error) {
	return mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
}

// `cluster.New(config)`: write package `multicluster`, or a second `ctrl.NewManager`, which `mgr.Add` runs
func _(mgr ctrl.Manager) error {
	other, err := cluster.New(mgr.GetConfig())
	if err != nil {
		return err
	}
	return mgr.Add(other)
}

// Builder

// `controller.Options{NeedLeaderElection: …, CacheSyncTimeout: …}`: write the builder's methods of these names
func _(no bool) controller.Options {
	return controller.Options{NeedLeaderElection: &no, CacheSyncTimeout: time.Minute}
}

// `controller.New(name, mgr, options)`: write `ctrl.NewControllerManagedBy(mgr).Named(name)`
func _(mgr ctrl.Manager, r reconcile.Reconciler) (controller.Controller, error) {
	return controller.New("web", mgr, controller.Options{Reconciler: r})
}

// `builder.TypedControllerManagedBy`: write `reconcile.New(name, r, reconcile.Options[K]{…})`, its `Watch`
// with sources of `reconcile/source`, and `mgr.Add`
func _(mgr ctrl.Manager, r reconcile.TypedReconciler[string], s source.TypedSource[string]) error {
	return builder.TypedControllerManagedBy[string](mgr).Named("web").WatchesRawSource(s).Complete(r)
}

// `WithLogConstructor` of a controller's builder: write nothing: the context's logger names the controller and the
// object
func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).
		WithLogConstructor(func(*reconcile.Request) logr.Logger { return mgr.GetLogger() }).Complete(r)
}

// Client: read

// `client.NewWithWatch`: write an informer: `informer.For` with `mgr.Informers()`
func _(ctx context.Context, config *rest.Config) (watch.Interface, error) {
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, err
	}
	return c.Watch(ctx, &corev1.PodList{})
}

// `c.IsObjectNamespaced(obj)`: write `apiutil.IsObjectNamespaced(obj, mgr.GetScheme(), mgr.GetRESTMapper())`
func _(c client.Client, obj runtime.Object) (bool, error) { return c.IsObjectNamespaced(obj) }

// `c.RESTMapper()`: write `mgr.GetRESTMapper()`
func _(c client.Client) meta.RESTMapper { return c.RESTMapper() }

// `&client.GetOptions{…}`: write `client.ReadOptions{…}`, whose fields are those of this framework
func _(ctx context.Context, c client.Client, key client.ObjectKey, pod *corev1.Pod) error {
	return c.Get(ctx, key, pod, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
}

// Client: write

// `client.NewNamespacedClient(c, namespace)`: write the namespace in the objects and in `client.InNamespace(namespace)`
func _(c client.Client) client.Client { return client.NewNamespacedClient(c, "default") }

// `client.NewDryRunClient(c)`: write `client.Options{DryRun: true}`, or `client.DryRunAll` in a call
func _(c client.Client) client.Client { return client.NewDryRunClient(c) }

// `client.WithFieldOwner(c, owner)`: write `client.Options{FieldManager: owner}`, or `client.FieldOwner(owner)` in a
// call
func _(c client.Client) client.Client { return client.WithFieldOwner(c, "web") }

// `&client.CreateOptions{…}`, `UpdateOptions` and `PatchOptions`: write `client.WriteOptions{…}`, whose `Force` and
// `DryRun` are booleans
func _(ctx context.Context, c client.Client, pod *corev1.Pod, yes bool) error {
	return c.Patch(ctx, pod, client.Apply, &client.PatchOptions{FieldManager: "web", Force: &yes})
}

// `client.StrategicMergeFrom(obj, client.MergeFromWithOptimisticLock{})`: write
// `client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})`
func _(pod *corev1.Pod) client.Patch {
	return client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})
}

// controllerutil

// `controllerutil.RemoveControllerReference(owner, obj, scheme)`: write
// `controllerutil.RemoveControllerReference(owner, obj)`, which reports whether there was one
func _(owner, obj metav1.Object, scheme *runtime.Scheme) error {
	return controllerutil.RemoveControllerReference(owner, obj, scheme)
}

// `controllerutil.RemoveOwnerReference(owner, obj, scheme)`: write `controllerutil.RemoveOwnerReference(owner, obj)`,
// which reports whether there was one
func _(owner, obj metav1.Object, scheme *runtime.Scheme) error {
	return controllerutil.RemoveOwnerReference(owner, obj, scheme)
}

// Handlers and sources

// `handler.Funcs{CreateFunc: …}`: write `builder.HandlerFuncs{OnAdd: …}`; the queue is a
// `reconcile.Enqueuer[ctrl.Request]`
func _() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent,
			q workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
	}
}

// Metrics

// `metrics.Registry.Gather()`: write a request to the registry, which is an `http.Handler`
func _() (prometheus.Gatherer, error) {
	_, err := metrics.Registry.Gather()
	return metrics.Registry, err
}

// Webhooks

// `&authentication.Webhook{Handler: h}`: write an `http.Handler` of your own, for `mgr.GetWebhookServer().Register`
func _(h authentication.Handler) *authentication.Webhook { return &authentication.Webhook{Handler: h} }

// Tests

// `fake.NewClientBuilder().WithObjects(objects...).Build()`: write `localapi.NewTest(t, objects...)`: an API server in
// the test, with watches, optionally in virtual time
func _() client.Client { return fake.NewClientBuilder().WithObjects(&corev1.Pod{}).Build() }

// `interceptor.Funcs`: write `Intercept` and `Requests` of `localapi.NewTest`; outside of tests, `Wrap` of the
// configuration
func _(t *testing.T, c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return t.Context().Err()
		},
	})
}
