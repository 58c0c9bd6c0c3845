//lint:file-ignore SA1019 Users write these idioms, the deprecated ones, too.

package idioms_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/localapi/envtest"
	"github.com/flyball-dev/flyball/manager/builder"
	ctrl "github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/ctrl/apiutil"
	"github.com/flyball-dev/flyball/manager/ctrl/cache"
	"github.com/flyball-dev/flyball/manager/ctrl/controller"
	"github.com/flyball-dev/flyball/manager/ctrl/handler"
	"github.com/flyball-dev/flyball/manager/ctrl/healthz"
	"github.com/flyball-dev/flyball/manager/ctrl/log"
	"github.com/flyball-dev/flyball/manager/ctrl/manager"
	"github.com/flyball-dev/flyball/manager/ctrl/metrics"
	"github.com/flyball-dev/flyball/manager/ctrl/predicate"
	"github.com/flyball-dev/flyball/manager/ctrl/reconcile"
	"github.com/flyball-dev/flyball/manager/ctrl/source"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
	"github.com/flyball-dev/flyball/reconcile/event"
)

// Reconciler is what kubebuilder scaffolds.
type Reconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder record.EventRecorder
}

// Program

func _() error {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func _() {
	setupLog := ctrl.Log.WithName("setup")
	if _, err := ctrl.GetConfig(); err != nil {
		setupLog.Error(err, "unable to get kubeconfig")
		os.Exit(1)
	}
}

func _(logger logr.Logger) { ctrl.SetLogger(logger) }

func _(logger logr.Logger) {
	log.SetLogger(logger)
	log.Log.WithName("main").V(1).Info("starting", "version", "v1")
}

func _(config *rest.Config) (manager.Manager, error) {
	return manager.New(config, manager.Options{})
}

func _(mgr ctrl.Manager) error {
	return (&Reconciler{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), Recorder: mgr.GetEventRecorderFor("web"),
	}).SetupWithManager(mgr)
}

func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Named("web").Complete(r)
}

func _(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("readyz", healthz.Ping)
}

func _(mgr manager.Manager) error {
	ready := healthz.Checker(func(*http.Request) error { return errors.New("not yet") })
	return mgr.AddReadyzCheck("database", ready)
}

func _(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}))
}

func _(ctx context.Context, mgr ctrl.Manager) {
	select {
	case <-mgr.Elected():
	case <-ctx.Done():
	}
}

func _(mgr ctrl.Manager) (*http.Client, *rest.Config) { return mgr.GetHTTPClient(), mgr.GetConfig() }

func _(mgr ctrl.Manager) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(mgr.GetConfig())
}

func _(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", func(obj client.Object) []string {
		return []string{obj.(*corev1.Pod).Spec.NodeName}
	})
}

func _(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, "spec.nodeName", func(client.Object) []string { return nil })
}

func _(ctx context.Context, mgr ctrl.Manager) error {
	var caches cache.Cache = mgr.GetCache()
	if !caches.WaitForCacheSync(ctx) {
		return errors.New("caches did not sync")
	}
	return caches.List(ctx, &corev1.PodList{})
}

func _(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetCache().IndexField(ctx, &corev1.Pod{}, "uid", func(obj client.Object) []string {
		return []string{string(obj.GetUID())}
	})
}

func _(ctx context.Context, mgr ctrl.Manager) error {
	var reader client.Reader = mgr.GetAPIReader()
	return reader.Get(ctx, types.NamespacedName{Name: "kube-system"}, &corev1.Namespace{})
}

func _(mgr ctrl.Manager) (*meta.RESTMapping, error) {
	return mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
}

func _(mgr ctrl.Manager) events.EventRecorder { return mgr.GetEventRecorder("web") }

func _(mgr ctrl.Manager) error {
	return mgr.AddMetricsServerExtraHandler("/debug", http.NotFoundHandler())
}

func _(runnable manager.LeaderElectionRunnable) bool { return runnable.NeedLeaderElection() }

// Builder

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return builder.ControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		WithEventFilter(predicate.ResourceVersionChangedPredicate{}).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		Owns(&corev1.ConfigMap{}, builder.MatchEveryOwner).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.OnlyMetadata).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler, toPods handler.MapFunc) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		WatchesMetadata(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(toPods)).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				time.Second, time.Minute),
			ReconciliationTimeout: time.Minute,
		}).
		Complete(r)
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	_, err := ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Build(r)
	return err
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	labeled, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).WithEventFilter(labeled).Complete(r)
}

func _(b *builder.Builder) *ctrl.Builder { return b.Owns(&corev1.Secret{}) }

// Reconciler

func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	var deployment appsv1.Deployment
	if err := r.Get(ctx, req.NamespacedName, &deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		logger.Error(err, "unable to fetch Deployment")
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

var _ reconcile.Reconciler = &Reconciler{}

func _() reconcile.Reconciler {
	return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{Requeue: true}, nil
	})
}

func _() (ctrl.Result, error) {
	return ctrl.Result{}, reconcile.TerminalError(errors.New("a bad schedule"))
}

func _(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

type pods struct{}

func (pods) Reconcile(context.Context, *corev1.Pod) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func _(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Pod{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), pods{}))
}

var _ reconcile.ObjectReconciler[*corev1.Pod] = pods{}

func _(result ctrl.Result) bool { return result.IsZero() }

func _() []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}}
}

func _(r reconcile.TypedReconciler[string]) (reconcile.Result, error) {
	return r.Reconcile(context.TODO(), "key")
}

func _(priority int) ctrl.Result { return ctrl.Result{RequeueAfter: time.Second, Priority: &priority} }

func _(ctx context.Context) {
	logger := ctrl.LoggerFrom(ctx, "pod", "web")
	ctx = ctrl.LoggerInto(ctx, logger.WithValues("step", 1))
	log.FromContext(ctx).V(1).Info("done")
}

func _(ctx context.Context, logger logr.Logger) context.Context { return log.IntoContext(ctx, logger) }

func _(ctx context.Context) { log.FromContext(ctx, "node", "a").Info("drained") }

func (r *Reconciler) _(pod *corev1.Pod) {
	r.Recorder.Event(pod, corev1.EventTypeNormal, "Created", "created the pod")
	r.Recorder.Eventf(pod, corev1.EventTypeWarning, "Failed", "failed %d times", 3)
}

// Client: read

func _(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	return client.New(config, client.Options{Scheme: scheme})
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, pod)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
}

func _(ctx context.Context, c client.Reader) error {
	return c.List(ctx, &corev1.PodList{}, client.InNamespace("default"), client.MatchingLabels{"app": "web"})
}

func _(ctx context.Context, c client.Reader) error {
	return c.List(ctx, &corev1.PodList{}, client.MatchingFields{"spec.nodeName": "a"})
}

func _(ctx context.Context, c client.Reader) error {
	return c.List(ctx, &corev1.PodList{}, client.HasLabels{"app"}, client.Limit(100), client.Continue("token"))
}

func _(ctx context.Context, c client.Reader, selector labels.Selector) error {
	return c.List(ctx, &corev1.PodList{}, client.MatchingLabelsSelector{Selector: selector})
}

func _(ctx context.Context, c client.Reader) error {
	return c.List(ctx, &corev1.PodList{},
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.nodeName", "a")})
}

func _(ctx context.Context, c client.Reader, selector labels.Selector) error {
	return c.List(ctx, &corev1.PodList{}, &client.ListOptions{Namespace: "default", LabelSelector: selector})
}

func _(ctx context.Context, c client.Reader) error {
	return c.List(ctx, &corev1.PodList{},
		&client.ListOptions{FieldSelector: fields.SelectorFromSet(fields.Set{"spec.nodeName": "a"}), Limit: 10})
}

func _(ctx context.Context, c client.Reader, pods *corev1.PodList) error {
	options := []client.ListOption{client.InNamespace("default")}
	options = append(options, client.MatchingLabels{"app": "web"})
	return c.List(ctx, pods, options...)
}

func _(ctx context.Context, c client.Reader) error {
	return c.List(ctx, &corev1.PodList{}, client.UnsafeDisableDeepCopy)
}

func _(ctx context.Context, c client.Client) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"})
	return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, u)
}

func _(ctx context.Context, c client.Client) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
	return c.List(ctx, list)
}

func _(c client.Client, obj client.Object) (schema.GroupVersionKind, error) {
	return c.GroupVersionKindFor(obj)
}

func _(list client.ObjectList) (int, error) { return meta.LenList(list), meta.EachListItem(list, nil) }

// Client: write

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Create(ctx, pod, client.FieldOwner("web"))
}

const owner = client.FieldOwner("web")

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Update(ctx, pod, owner, client.DryRunAll)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Status().Update(ctx, pod)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	pod.Labels = map[string]string{"app": "web"}
	return c.Patch(ctx, pod, client.MergeFrom(before))
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	patch := client.MergeFromWithOptions(pod.DeepCopy(), client.MergeFromWithOptimisticLock{})
	pod.Finalizers = nil
	return c.Patch(ctx, pod, patch)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	patch := client.StrategicMergeFrom(pod.DeepCopy())
	pod.Spec.Containers[0].Image = "web:2"
	return c.Patch(ctx, pod, patch)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Status().Patch(ctx, pod, client.MergeFrom(pod.DeepCopy()), client.FieldOwner("web"))
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"web"}}}`)))
}

func _(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	return c.Patch(ctx, u, client.Apply, client.ForceOwnership, client.FieldOwner("web"))
}

func _(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, owner)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Patch(ctx, pod, client.Merge)
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return client.IgnoreNotFound(c.Delete(ctx, pod))
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return client.IgnoreAlreadyExists(c.Create(ctx, pod))
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	policy := client.PropagationPolicy(metav1.DeletePropagationBackground)
	return c.Delete(ctx, pod, policy, client.GracePeriodSeconds(0))
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.Delete(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	foreground := metav1.DeletePropagationForeground
	return c.Delete(ctx, pod, &client.DeleteOptions{PropagationPolicy: &foreground})
}

func _(ctx context.Context, c client.Client) error {
	return c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.MatchingLabels{"app": "web"})
}

func _(ctx context.Context, c client.Client, web *appsv1.Deployment) error {
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(ctx, web, scale); err != nil {
		return err
	}
	scale.Spec.Replicas++
	return c.SubResource("scale").Update(ctx, web, client.WithSubResourceBody(scale))
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
}

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		return c.Update(ctx, pod)
	})
}

func _(ctx context.Context, w client.Writer, pod *corev1.Pod) error { return w.Create(ctx, pod) }

func _(ctx context.Context, w client.StatusWriter, pod *corev1.Pod) error { return w.Update(ctx, pod) }

func _(ctx context.Context, w client.SubResourceWriter, pod *corev1.Pod, o client.SubResourcePatchOption) error {
	return w.Patch(ctx, pod, client.MergeFrom(pod), o)
}

// counting is a client that counts what it creates, as tests wrap one.
type counting struct {
	client.Client
	created int
}

func (c *counting) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	c.created++
	return c.Client.Create(ctx, obj, opts...)
}

func (c *counting) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.Client.Update(ctx, obj, opts...)
}

func (c *counting) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c *counting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Client.List(ctx, list, opts...)
}

func (c *counting) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.Client.Delete(ctx, obj, opts...)
}

var _ client.Client = &counting{}

func _(obj client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, scheme)
}

func _(mgr ctrl.Manager, obj client.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, mgr.GetScheme(), mgr.GetRESTMapper())
}

func _(mgr ctrl.Manager, kind schema.GroupVersionKind) (bool, error) {
	return apiutil.IsGVKNamespaced(kind, mgr.GetRESTMapper())
}

// controllerutil

func _(ctx context.Context, r *Reconciler, web *appsv1.Deployment) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		cm.Data = map[string]string{"k": "v"}
		return controllerutil.SetControllerReference(web, cm, r.Scheme)
	})
	if err == nil && result != controllerutil.OperationResultNone {
		log.FromContext(ctx).Info("reconciled", "operation", result)
	}
	return err
}

func _(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
	_, err := ctrl.CreateOrUpdate(ctx, c, cm, func() error { return nil })
	return err
}

func _(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (controllerutil.OperationResult, error) {
	return controllerutil.CreateOrPatch(ctx, c, cm, func() error { return nil })
}

func _(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
	_, err := ctrl.CreateOrPatch(ctx, c, cm, func() error { return nil })
	return err
}

const finalizer = "example.com/finalizer"

func _(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	if pod.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(pod, finalizer) {
			return c.Update(ctx, pod)
		}
		return nil
	}
	if controllerutil.ContainsFinalizer(pod, finalizer) {
		controllerutil.RemoveFinalizer(pod, finalizer)
		return c.Update(ctx, pod)
	}
	return nil
}

func _(web *appsv1.Deployment, pod *corev1.Pod, scheme *runtime.Scheme) error {
	return ctrl.SetControllerReference(web, pod, scheme)
}

func _(web *appsv1.Deployment, pod *corev1.Pod, scheme *runtime.Scheme) error {
	return controllerutil.SetOwnerReference(web, pod, scheme, controllerutil.WithBlockOwnerDeletion(false))
}

func _(web *appsv1.Deployment, pod *corev1.Pod, scheme *runtime.Scheme) (bool, error) {
	return controllerutil.HasOwnerReference(pod.OwnerReferences, web, scheme)
}

func _(pod *corev1.Pod) bool { return controllerutil.HasControllerReference(pod) }

func _(err error) bool {
	owned := &controllerutil.AlreadyOwnedError{}
	return errors.As(err, &owned)
}

// Events and predicates

func _() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() },
	}
}

func _() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

func _() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool { return !e.DeleteStateUnknown }}
}

func _() predicate.Funcs {
	return predicate.Funcs{GenericFunc: func(e event.GenericEvent) bool { return e.Object != nil }}
}

func _() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == "default" })
}

func _() predicate.Predicate {
	return predicate.And(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

func _() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

func _(p predicate.Predicate) predicate.Predicate { return predicate.Not(p) }

// onlySpec embeds a predicate and overrides a method.
type onlySpec struct {
	predicate.GenerationChangedPredicate
}

func (onlySpec) Create(event.CreateEvent) bool { return false }

var _ predicate.Predicate = onlySpec{}

// none has the four methods itself.
type none struct{}

func (none) Create(event.CreateEvent) bool   { return false }
func (none) Update(event.UpdateEvent) bool   { return false }
func (none) Delete(event.DeleteEvent) bool   { return false }
func (none) Generic(event.GenericEvent) bool { return false }

func _(mgr ctrl.Manager) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).WithEventFilter(none{})
}

func _() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Pod]) bool { return e.ObjectNew.Spec.NodeName != "" },
	}
}

// Handlers and sources

func (r *Reconciler) _(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&appsv1.Deployment{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(
			func(ctx context.Context, obj client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
			}), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Complete(r)
}

func _(mgr ctrl.Manager) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).Watches(&corev1.Pod{}, handler.EnqueueRequestForOwner(
		mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.ReplicaSet{}, handler.OnlyControllerOwner()))
}

func _() handler.EventHandler { return &handler.EnqueueRequestForObject{} }

func _(f handler.MapFunc) handler.EventHandler { return handler.EnqueueRequestsFromMapFunc(f) }

func _() handler.TypedEventHandler[*corev1.Pod, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, pod *corev1.Pod) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: pod.Spec.NodeName}}}
	})
}

func _(mgr ctrl.Manager) *builder.Builder {
	return ctrl.NewControllerManagedBy(mgr).WatchesRawSource(
		source.Kind(mgr.GetCache(), &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}))
}

func _(mgr ctrl.Manager, p predicate.TypedPredicate[*corev1.Pod]) source.Source {
	return source.Kind(mgr.GetCache(), &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, p)
}

func _(mgr ctrl.Manager) source.Source {
	return source.Kind[client.Object](mgr.GetCache(), &corev1.Pod{}, &handler.EnqueueRequestForObject{})
}

func _(mgr ctrl.Manager, r reconcile.Reconciler) error {
	events := make(chan event.GenericEvent)
	return ctrl.NewControllerManagedBy(mgr).
		Named("outside").
		WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

func _(events chan event.GenericEvent, pod *corev1.Pod) { events <- event.GenericEvent{Object: pod} }

func _(pods chan event.TypedGenericEvent[*corev1.Pod]) source.Source {
	return source.Channel(pods, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})
}

// Metrics

var reconciled = prometheus.NewCounter(prometheus.CounterOpts{Name: "web_reconciled_total", Help: "Reconciles."})

func _() { metrics.Registry.MustRegister(reconciled) }

func _() error { return metrics.Registry.Register(reconciled) }

func _() bool { return metrics.Registry.Unregister(reconciled) }

// Webhooks

// pods validates and defaults, too.

func (pods) Default(_ context.Context, pod *corev1.Pod) error {
	pod.Labels = map[string]string{"app": "web"}
	return nil
}

func (pods) ValidateCreate(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return admission.Warnings{"this kind is old"}, nil
}

func (pods) ValidateUpdate(_ context.Context, _, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, nil)
}

func (pods) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) { return nil, nil }

func _(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(pods{}).WithValidator(pods{}).Complete()
}

var _ admission.Validator[*corev1.Pod] = pods{}

var _ admission.Defaulter[*corev1.Pod] = pods{}

func _(mgr ctrl.Manager) error {
	return builder.WebhookManagedBy(mgr, &corev1.Pod{}).WithValidator(pods{}).
		WithValidatorCustomPath("/validate").Complete()
}

// annotator is a handler of admission requests.
type annotator struct {
	decoder admission.Decoder
}

func (a *annotator) Handle(_ context.Context, req admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := a.decoder.Decode(req, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, []byte(`{}`))
}

func _(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register("/mutate", &webhook.Admission{
		Handler: &annotator{decoder: admission.NewDecoder(mgr.GetScheme())},
	})
}

func _(allow bool) admission.Response {
	if allow {
		return admission.Allowed("fine").WithWarnings("soon not")
	}
	return admission.Denied("not allowed")
}

func _(req webhook.AdmissionRequest) webhook.AdmissionResponse {
	return admission.ValidationResponse(req.Operation == "CREATE", "")
}

func _() admission.Handler {
	return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})
}

func _(h admission.Handler) admission.Handler { return admission.MultiValidatingHandler(h, h) }

func _(ctx context.Context) (string, error) {
	req, err := admission.RequestFromContext(ctx)
	return req.UserInfo.Username, err
}

func _(scheme *runtime.Scheme) *admission.Webhook { return admission.WithValidator(scheme, pods{}) }

func _(hub conversion.Hub, spoke conversion.Convertible) error { return spoke.ConvertTo(hub) }

// Tests

func _(t *testing.T) {
	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd"}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	if _, err := client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
}

func _(config *rest.Config) error {
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"config/crd"}})
	return err
}

func _() *envtest.Environment {
	return &envtest.Environment{WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"config/webhook"}}}
}
