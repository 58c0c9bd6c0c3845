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
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
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
	// QueueMetrics receives the metrics of the queue. Nil: none.
	QueueMetrics workqueue.MetricsProvider
}

const (
	defaultWorkers = 5
	// maxRetries is how often a Deployment whose sync fails is tried again before it waits for its next event: with
	// the default backoff for about three minutes.
	//
	// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/deployment_controller.go
	maxRetries = 15
)

// namespaceTerminating is the cause in the server's refusal to create something in a namespace that is going away.
const namespaceTerminating = corev1.NamespaceTerminatingCause

// New makes the controller. It adds the indexes it needs to the informers; nothing runs before the controller's Run.
// Whoever owns the informers runs them.
func New(c Config, o Options) (*reconcile.Controller[reconcile.Request], error) {
	if c.Client == nil || c.Deployments == nil || c.ReplicaSets == nil || c.Pods == nil || c.Recorder == nil {
		return nil, errors.New("deployment: every field of Config is required")
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if err := pods.AddControllerIndex(c.Pods); err != nil {
		return nil, err
	}
	if err := addClaimableIndex(c.ReplicaSets); err != nil {
		return nil, err
	}
	r := newReconciler(c)
	ctrl := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, Metrics: o.QueueMetrics, Ready: r.ready,
	})
	route := router{deployments: c.Deployments, replicaSets: c.ReplicaSets}
	for _, source := range []reconcile.Source[reconcile.Request]{
		reconcile.Kind(c.Deployments, reconcile.EnqueueObject[*appsv1.Deployment]()),
		reconcile.Kind(c.ReplicaSets, route.replicaSetEvents()),
		reconcile.Kind(c.Pods, route.podEvents()),
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

// ready puts a sync off that does not see what the last one wrote: it would write against outdated versions, and fail
// with a conflict; or create again what it created. The event of the missing write wakes the Deployment.
//
// Differs: kube-controller-manager's Deployment controller runs into the conflict and retries. The objects go through
// the same states.
func (r *reconciler) ready(_ context.Context, key reconcile.Request) error {
	d, ok := r.Deployments.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	return r.Client.Seen(d.UID)
}

// Reconcile observes the Deployment named by key, plans and applies.
//
// Errors: what could not be written, to be retried; a terminal one for a Deployment that cannot be understood. In a
// namespace that is going away there is nothing to retry.
func (r *reconciler) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	d, ok := r.Deployments.Get(key.Namespace, key.Name)
	if !ok {
		return reconcile.Result{}, nil
	}
	ctx = client.WithOwner(ctx, d.UID) // It does not wait for what was written for another of its name.
	o, err := r.observe(ctx, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	requeueAfter, err := r.carryOut(ctx, o)
	if apierrors.HasStatusCause(err, namespaceTerminating) {
		err = nil
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, err
}

// carryOut plans and applies; and does so once more if it turns out that the new ReplicaSet had been overlooked.
func (r *reconciler) carryOut(ctx context.Context, o Observed) (time.Duration, error) {
	a := &applier{
		client: r.Client, recorder: r.Recorder, cached: r.ReplicaSets.Get, observed: o,
	}
	for {
		plan, err := NewPlan(a.observed)
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
			if o.Pods[rs.UID], err = r.Pods.ByIndex(pods.ControllerIndex,
				pods.ControllerKey(rs, replicaSetKind)); err != nil {
				return Observed{}, fmt.Errorf("list pods of replica set %s: %w", rs.Name, err)
			}
		}
	}
	o.Now = time.Now()
	return o, nil
}

// claim adopts and releases, and returns the ReplicaSets that d owns then, as the server has them: an adopted one is
// what the adoption returned, so that it can be written in the same sync.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/deployment_controller.go, getReplicaSetsForDeployment
func (r *reconciler) claim(ctx context.Context, d *appsv1.Deployment) ([]*appsv1.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, reconcile.Terminal(fmt.Errorf("read selector: %w", err))
	}
	candidates, err := r.claimable(d)
	if err != nil {
		return nil, fmt.Errorf("list replica sets: %w", err)
	}
	patched := map[types.UID]*appsv1.ReplicaSet{}
	claimer := claim.Claimer[*appsv1.ReplicaSet]{
		Owner: d, Kind: kind, Selector: selector,
		CanAdopt: claim.LiveCheck(d, func(ctx context.Context) (metav1.Object, error) {
			live := &appsv1.Deployment{}
			return live, r.Client.Get(ctx, client.ObjectKeyFromObject(d), live, client.Live)
		}),
		Patch: func(ctx context.Context, rs *appsv1.ReplicaSet, patch []byte) error {
			got := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: rs.Namespace, Name: rs.Name}}
			err := r.Client.Patch(ctx, got, client.RawPatch(types.StrategicMergePatchType, patch))
			if err == nil {
				patched[rs.UID] = got
			}
			return err
		},
	}
	claimed, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim replica sets: %w", err)
	}
	for i, rs := range claimed {
		if got, ok := patched[rs.UID]; ok {
			claimed[i] = got
		}
	}
	return claimed, nil
}

// claimable are the ReplicaSets that d owns, and those of its namespace that nobody does.
func (r *reconciler) claimable(d *appsv1.Deployment) ([]*appsv1.ReplicaSet, error) {
	owned, err := r.ReplicaSets.ByIndex(claimableIndex, string(d.UID))
	if err != nil {
		return nil, err
	}
	orphans, err := r.ReplicaSets.ByIndex(claimableIndex, orphansOf(d.Namespace))
	if err != nil {
		return nil, err
	}
	return append(owned, orphans...), nil
}

// claimableIndex is the name of the index of ReplicaSets by the UID of their controller, or as orphans.
const claimableIndex = "deploymentClaimable"

func orphansOf(namespace string) string { return "orphans/" + namespace }

func addClaimableIndex(replicaSets informer.Informer[*appsv1.ReplicaSet]) error {
	err := replicaSets.AddIndex(claimableIndex, indexClaimable)
	if err != nil && !errors.Is(err, informer.ErrIndexExists) {
		return fmt.Errorf("index replica sets for adoption: %w", err)
	}
	return nil
}

func indexClaimable(rs *appsv1.ReplicaSet) ([]string, error) {
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return []string{orphansOf(rs.Namespace)}, nil
}
