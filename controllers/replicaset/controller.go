package replicaset

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Name is the controller's name in the registry, in logs and in metrics.
const Name = "replicaset-controller"

// Options configures the controller. The zero value works and is what kube-controller-manager runs with.
type Options struct {
	// Workers is how many ReplicaSets are reconciled at once. Zero means 5.
	Workers int
	// Burst is how many pods one sync creates or deletes at most. Zero means 500.
	Burst int
	// Metrics receives the metrics of the queue. Nil: none.
	Metrics workqueue.MetricsProvider
}

const (
	defaultWorkers = 5
	defaultBurst   = 500
)

// recheck is how long a ReplicaSet waits until a sync checks again whether it may create pods.
const recheck = time.Second

// New makes the controller. It adds the indexes that it needs to the informers. Nothing runs before the controller's
// Run; the caller runs the informers. The recorder is the one for [Name].
func New(c *client.Cluster, informers *informer.Factory, recorder events.Recorder, o Options,
) (*reconcile.Controller[reconcile.Request], error) {
	sets, err1 := informer.For[*appsv1.ReplicaSet](informers)
	podCache, err2 := informer.For[*corev1.Pod](informers)
	err := errors.Join(err1, err2)
	if err == nil {
		err = errors.Join(claim.AddIndex(podCache), claim.AddIndex(sets), pods.AddLabelIndex(podCache))
	}
	if err != nil {
		return nil, fmt.Errorf("replicaset: %w", err)
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	r := newReconciler(&reconciler{client: c, sets: sets, pods: podCache, recorder: recorder, burst: o.Burst})
	ctrl := reconcile.New(Name, r,
		reconcile.Options[reconcile.Request]{Workers: o.Workers, Metrics: o.Metrics, Ready: r.ready})
	route := newRouter(sets)
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(sets, route.setEvents()),
		source.Kind(podCache, route.podEvents()),
	} {
		if err := ctrl.Watch(source); err != nil {
			return nil, err
		}
	}
	return ctrl, nil
}

// reconciler brings one ReplicaSet at a time one step closer to what it asks for.
type reconciler struct {
	client   *client.Cluster
	sets     informer.Informer[*appsv1.ReplicaSet]
	pods     informer.Informer[*corev1.Pod]
	recorder events.Recorder
	burst    int
	// refused are the ReplicaSets for which the creation of pods is paused.
	refused holds
	// dropsTerminating means that the API server does not know status.terminatingReplicas: it dropped the field from
	// the last write. Then the field is not written, because every sync would try again.
	//
	// Source: KEP-3973; servers before v1.35 drop the field unless told otherwise.
	dropsTerminating atomic.Bool
}

// newReconciler completes r.
func newReconciler(r *reconciler) *reconciler {
	client.TrackInformer(r.client, corev1.Resource("pods"), r.pods)
	client.TrackInformer(r.client, appsv1.Resource("replicasets"), r.sets)
	if r.burst <= 0 {
		r.burst = defaultBurst
	}
	return r
}

// writtenBy returns a context for the writes for one ReplicaSet. Writes are recorded by UID: a ReplicaSet does not wait
// for writes for an earlier one of its name.
func writtenBy(ctx context.Context, set *appsv1.ReplicaSet) context.Context {
	return client.WithOwner(ctx, set.UID)
}

// Reconcile creates or deletes pods of the ReplicaSet named by key and writes its status.
//
// Errors: a write that failed, to be retried without a limit; a terminal error if the selector cannot be used.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet
func (r *reconciler) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	set, ok := r.sets.Get(key.Namespace, key.Name)
	if !ok {
		return reconcile.Result{}, nil
	}
	ctx = writtenBy(ctx, set)
	o, err := r.observe(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	writeErr := r.apply(ctx, o, planPods(o, r.burst))

	now := time.Now() // one instant for the status and for what follows from it
	written, err := r.writeStatus(ctx, set, planStatus(o, writeErr, now))
	if err != nil {
		return reconcile.Result{}, errors.Join(writeErr, err)
	}
	return r.again(o, written, now), writeErr
}

// ready postpones a sync until the caches have what was written for the ReplicaSet. Until then they may be wrong about
// it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet, by its consistency store.
func (r *reconciler) ready(_ context.Context, key reconcile.Request) error {
	set, ok := r.sets.Get(key.Namespace, key.Name)
	if !ok {
		return nil
	}
	return r.client.Seen(set.UID)
}

// again returns when to look at the ReplicaSet again even without an event: when a pod becomes available, or when the
// creation of pods may be retried.
func (r *reconciler) again(o observed, written *appsv1.ReplicaSet, now time.Time) reconcile.Result {
	var after time.Duration
	if at := nextCheck(written, o.active, now); !at.IsZero() {
		after = max(time.Until(at), time.Nanosecond) // a time that has passed is due at once
	}
	if !o.settled && (after == 0 || after > recheck) {
		after = recheck
	}
	return reconcile.Result{RequeueAfter: after}
}
