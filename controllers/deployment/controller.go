package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Name is the controller's name in the registry, in logs and in metrics.
const Name = "deployment-controller"

// Options configures the controller. The zero value works and is what kube-controller-manager runs with.
type Options struct {
	// Workers is how many Deployments are reconciled at once. Zero means 5.
	Workers int
	// Metrics receives the metrics of the queue. Nil: none.
	Metrics workqueue.MetricsProvider
}

const (
	defaultWorkers = 5
	// maxRetries is how often a failed sync is retried before the Deployment waits for its next event. With the default
	// backoff that takes about three minutes.
	//
	// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go
	maxRetries = 15
)

// New makes the controller. It adds the indexes that it needs to the informers. Nothing runs before the controller's
// Run; the caller runs the informers. The recorder is the one for [Name].
func New(c *client.Cluster, informers *informer.Factory, recorder events.Recorder, o Options,
) (*reconcile.Controller[reconcile.Request], error) {
	deployments, err1 := informer.For[*appsv1.Deployment](informers)
	sets, err2 := informer.For[*appsv1.ReplicaSet](informers)
	pods, err3 := informer.For[*corev1.Pod](informers)
	err := errors.Join(err1, err2, err3)
	if err == nil {
		err = errors.Join(claim.AddIndex(pods), claim.AddIndex(sets))
	}
	if err != nil {
		return nil, fmt.Errorf("deployment: %w", err)
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	w := parts{client: c, deployments: deployments, sets: sets, pods: pods, recorder: recorder}
	r := newReconciler(w)
	ctrl := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, Metrics: o.Metrics, Ready: r.ready,
	})
	route := newRouter(w)
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(deployments, handler.EnqueueObject[*appsv1.Deployment]()),
		source.Kind(sets, route.replicaSetEvents()),
		source.Kind(pods, route.podEvents()),
	} {
		if err := ctrl.Watch(source); err != nil {
			return nil, err
		}
	}
	return ctrl, nil
}

// parts is what the controller reads and writes.
type parts struct {
	client      *client.Cluster
	deployments informer.Informer[*appsv1.Deployment]
	sets        informer.Informer[*appsv1.ReplicaSet]
	pods        informer.Informer[*corev1.Pod]
	recorder    events.Recorder
}

// reconciler brings one Deployment at a time one step closer to what it asks for.
type reconciler struct{ parts }

func newReconciler(w parts) *reconciler {
	client.TrackInformer(w.client, appsv1.Resource("deployments"), w.deployments)
	client.TrackInformer(w.client, appsv1.Resource("replicasets"), w.sets)
	return &reconciler{w}
}

// ready postpones a sync until the caches have what the last one wrote. Otherwise it would write against an outdated
// version and fail with a conflict, or create the same object again. The event of the missing write enqueues the key.
//
// Differs: kube-controller-manager's Deployment controller gets the conflict and retries. The objects go through the
// same states.
func (r *reconciler) ready(_ context.Context, key reconcile.Request) error {
	d, ok := r.deployments.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	return r.client.Seen(d.UID)
}

// Reconcile observes the Deployment that key names, makes a plan, and applies it.
//
// Errors: a write that failed, to be retried; a terminal error if no plan can be made. A refusal to create objects in a
// namespace that is being deleted is no error.
func (r *reconciler) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	d, ok := r.deployments.Get(key.Namespace, key.Name)
	if !ok {
		return reconcile.Result{}, nil
	}
	ctx = client.WithOwner(ctx, d.UID) // by UID: writes for an earlier Deployment of this name do not count
	o, err := r.observe(ctx, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	requeueAfter, err := r.carryOut(ctx, o)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		err = nil
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, err
}

// carryOut makes a plan and applies it. It does so a second time if the new ReplicaSet turns out to exist already.
func (r *reconciler) carryOut(ctx context.Context, o Observed) (time.Duration, error) {
	a := &applier{
		client: r.client, recorder: r.recorder, cached: r.sets.Get, observed: o,
		latest: make(map[string]*appsv1.ReplicaSet),
	}
	for {
		plan, err := Plan(a.observed)
		if err != nil {
			return 0, reconcile.Terminal(fmt.Errorf("plan: %w", err))
		}
		switch err := a.run(ctx, plan); {
		case errors.Is(err, errReplan) && len(a.observed.ReplicaSets) == len(o.ReplicaSets)+1:
		case err != nil:
			return 0, err
		default:
			return plan.RequeueAfter, nil
		}
	}
}

// observe claims the ReplicaSets of d and gathers what a plan is made from.
func (r *reconciler) observe(ctx context.Context, d *appsv1.Deployment) (Observed, error) {
	o := Observed{Deployment: d}
	if selectsAll(d) {
		o.Now = time.Now()
		return o, nil
	}
	var err error
	if o.ReplicaSets, err = r.claim(ctx, d); err != nil {
		return Observed{}, err
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		o.Pods = make(map[types.UID][]*corev1.Pod, len(o.ReplicaSets))
		for _, rs := range o.ReplicaSets {
			if o.Pods[rs.UID], err = claim.Controlled(r.pods, rs.UID); err != nil {
				return Observed{}, fmt.Errorf("list pods of replica set %s: %w", rs.Name, err)
			}
		}
	}
	o.Now = time.Now() // claiming may have taken a while
	return o, nil
}

// claim adopts and releases ReplicaSets, and returns those that d owns then. An adopted one is as the API server
// returned it, so that the same sync can write it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, getReplicaSetsForDeployment
func (r *reconciler) claim(ctx context.Context, d *appsv1.Deployment) ([]*appsv1.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, reconcile.Terminal(fmt.Errorf("read selector: %w", err))
	}
	candidates, err := claim.Candidates(r.sets, d)
	if err != nil {
		return nil, fmt.Errorf("list replica sets: %w", err)
	}
	claimed, err := claim.New[*appsv1.ReplicaSet](r.client, d, kind, selector).Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim replica sets: %w", err)
	}
	return claimed, nil
}
