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

// Config is what the controller needs. All fields are required.
type Config struct {
	Client      *client.Cluster
	Deployments informer.Informer[*appsv1.Deployment]
	ReplicaSets informer.Informer[*appsv1.ReplicaSet]
	Pods        informer.Informer[*corev1.Pod]
	// Recorder records under the component "deployment-controller".
	Recorder events.Recorder
}

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
	// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/deployment_controller.go
	maxRetries = 15
)

// New makes the controller. It adds the indexes that it needs to the informers. Nothing runs before the controller's
// Run; the caller runs the informers.
func New(c Config, o Options) (*reconcile.Controller[reconcile.Request], error) {
	if c.Client == nil || c.Deployments == nil || c.ReplicaSets == nil || c.Pods == nil || c.Recorder == nil {
		return nil, errors.New("deployment: every field of Config is required")
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if err := errors.Join(claim.AddIndex(c.Pods), claim.AddIndex(c.ReplicaSets)); err != nil {
		return nil, fmt.Errorf("deployment: %w", err)
	}
	r := newReconciler(c)
	ctrl := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, Metrics: o.Metrics, Ready: r.ready,
	})
	route := newRouter(c)
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(c.Deployments, handler.EnqueueObject[*appsv1.Deployment]()),
		source.Kind(c.ReplicaSets, route.replicaSetEvents()),
		source.Kind(c.Pods, route.podEvents()),
	} {
		if err := ctrl.Watch(source); err != nil {
			return nil, err
		}
	}
	return ctrl, nil
}

// reconciler brings one Deployment at a time one step closer to what it asks for.
type reconciler struct{ Config }

func newReconciler(c Config) *reconciler {
	client.Follow(c.Client, appsv1.Resource("deployments"), c.Deployments)
	client.Follow(c.Client, appsv1.Resource("replicasets"), c.ReplicaSets)
	return &reconciler{c}
}

// ready postpones a sync until the caches have what the last one wrote. Otherwise it would write against an outdated
// version and fail with a conflict, or create the same object again. The event of the missing write enqueues the key.
//
// Differs: kube-controller-manager's Deployment controller gets the conflict and retries. The objects go through the
// same states.
func (r *reconciler) ready(_ context.Context, key reconcile.Request) error {
	d, ok := r.Deployments.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	return r.Client.Seen(d.UID)
}

// Reconcile observes the Deployment that key names, makes a plan, and applies it.
//
// Errors: a write that failed, to be retried; a terminal error if no plan can be made. A refusal to create objects in a
// namespace that is being deleted is no error.
func (r *reconciler) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	d, ok := r.Deployments.Get(key.Namespace, key.Name)
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
		client: r.Client, recorder: r.Recorder, cached: r.ReplicaSets.Get, observed: o,
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
			if o.Pods[rs.UID], err = claim.Controlled(r.Pods, rs.UID); err != nil {
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
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/deployment_controller.go, getReplicaSetsForDeployment
func (r *reconciler) claim(ctx context.Context, d *appsv1.Deployment) ([]*appsv1.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, reconcile.Terminal(fmt.Errorf("read selector: %w", err))
	}
	candidates, err := claim.Candidates(r.ReplicaSets, d)
	if err != nil {
		return nil, fmt.Errorf("list replica sets: %w", err)
	}
	claimed, err := claim.New[*appsv1.ReplicaSet](r.Client, d, kind, selector).Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim replica sets: %w", err)
	}
	return claimed, nil
}
