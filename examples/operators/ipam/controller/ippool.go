package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// Finalizer keeps an IPPool until the reservations of its addresses are gone.
const Finalizer = "whereabouts.cni.cncf.io/ippool-cleanup"

// poolReconciler reconciles IPPools: it releases addresses that no Pod needs, and reports the pool's state in the
// status.
//
// It reads in this order: the pool, the reservations, and last, from the server, the Pods. If a Pod appears or an
// address is allocated after that, the pool or the reservation changes. Both are written only in the version that was
// read.
type poolReconciler struct {
	client.Client
	options  Options
	recorder events.Recorder
	seen     sightings
}

func (r *poolReconciler) setup(mgr ctrl.Manager) error {
	pools := func() *v1alpha1.IPPoolList { return &v1alpha1.IPPoolList{} }
	byPod := wake(r, pools, func(obj informer.Object) []client.ListOption {
		ref := podRef(obj)
		if reservation, is := obj.(*v1alpha1.OverlappingRangeIPReservation); is {
			ref = reservation.Spec.PodRef
		}
		return []client.ListOption{client.MatchingFields{podField: ref}}
	}, requestsForPools)
	return ctrl.NewControllerManagedBy(mgr).
		Named("ippool").
		For(&v1alpha1.IPPool{}).
		Watches(&v1alpha1.IPPool{}, handler.EnqueueMapped(r.neighbours), rangeChanged()).
		Watches(&corev1.Pod{}, byPod, whenFactsChange()).
		Watches(&v1alpha1.OverlappingRangeIPReservation{}, byPod,
			builder.WithPredicates(predicate.GenerationChanged[informer.Object]())).
		WithOptions(ctrl.ControllerOptions{MinInterval: r.options.MinInterval}).
		Complete(r)
}

func requestsForPools(list *v1alpha1.IPPoolList) (requests []ctrl.Request) {
	for i := range list.Items {
		requests = append(requests, reconcile.RequestFor(&list.Items[i]))
	}
	return requests
}

// rangeChanged accepts events that may affect overlapping pools.
func rangeChanged() builder.WatchOptions {
	return builder.WithPredicates(builder.PredicateFunc(func(e predicate.Event[informer.Object]) bool {
		return e.Type != predicate.Update ||
			e.Old.(*v1alpha1.IPPool).Spec.Range != e.Object.(*v1alpha1.IPPool).Spec.Range
	}))
}

// neighbours returns the other pools that overlap with a pool.
func (r *poolReconciler) neighbours(ctx context.Context, obj informer.Object) []ctrl.Request {
	pool := obj.(*v1alpha1.IPPool)
	cidr, err := ranges.Parse(pool.Spec.Range)
	if err != nil {
		return nil
	}
	network, _ := v1alpha1.NetworkAndNode(pool.Name, pool.Spec.Range)
	others, err := overlapping(ctx, r, pool.Namespace, network, cidr, client.Lagging)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Overlapping pools cannot be listed", "range", pool.Spec.Range)
	}
	return requestsForPools(&v1alpha1.IPPoolList{Items: others})
}

// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=ippools,verbs=list;watch;patch
// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=ippools/status,verbs=patch
// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=overlappingrangeipreservations,verbs=list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile implements ctrl.Reconciler.
func (r *poolReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pool v1alpha1.IPPool
	if err := r.Get(ctx, request.NamespacedName, &pool); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.options.Metrics.forgetPool(request.NamespacedName)
			r.seen.forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cidr, invalid := ranges.Parse(pool.Spec.Range)
	deleting, err := controllerutil.Finalize(ctx, r, &pool, Finalizer, func(ctx context.Context) error {
		if invalid != nil {
			return nil // it is not known which addresses were its own
		}
		return r.releaseAll(ctx, &pool, allocationsOf(&pool, cidr))
	})
	if deleting || err != nil {
		return ctrl.Result{}, err
	}
	p := &pass{poolReconciler: r, pool: &pool, key: request.NamespacedName, cidr: cidr}
	if p.helper, err = controllerutil.NewPatchHelper(r, &pool); err != nil {
		return ctrl.Result{}, err
	}
	if invalid != nil {
		r.options.Metrics.pool(request.NamespacedName, len(pool.Spec.Allocations))
		return ctrl.Result{}, p.conclude(ctx, stalled(ReasonInvalidRange, "%v", invalid))
	}
	return p.run(ctx)
}

// releaseAll deletes the reservations of a pool that is being deleted.
func (r *poolReconciler) releaseAll(ctx context.Context, pool *v1alpha1.IPPool, all []allocation) error {
	reserved, err := r.reservationsOf(ctx, pool, all)
	if err != nil {
		return err
	}
	return r.release(ctx, pool, all, reserved)
}

// reservationsOf returns the reservations of allocations, by the allocations' keys: those of the same address, for the
// same interface of the same Pod. It leaves out a reservation whose address now belongs to somebody else.
func (r *poolReconciler) reservationsOf(ctx context.Context, pool *v1alpha1.IPPool,
	all []allocation,
) (map[string][]*v1alpha1.OverlappingRangeIPReservation, error) {
	found := map[string][]*v1alpha1.OverlappingRangeIPReservation{}
	network, _ := v1alpha1.NetworkAndNode(pool.Name, pool.Spec.Range)
	for _, a := range all {
		if !a.ip.IsValid() {
			continue
		}
		var list v1alpha1.OverlappingRangeIPReservationList
		if err := r.List(ctx, &list, client.InNamespace(pool.Namespace), client.MatchingFields{podField: a.PodRef},
			client.ReadOnly); err != nil {
			return nil, fmt.Errorf("list reservations: %w", err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.Spec.IfName == a.IfName && v1alpha1.ReservationFor(o.Name, network, a.ip) {
				found[a.key] = append(found[a.key], o)
			}
		}
	}
	return found, nil
}

// release deletes the reservations of allocations, in the versions that were read.
func (r *poolReconciler) release(ctx context.Context, pool *v1alpha1.IPPool, all []allocation,
	reserved map[string][]*v1alpha1.OverlappingRangeIPReservation,
) error {
	var failed []error
	for _, a := range all {
		for _, o := range reserved[a.key] {
			if err := client.IgnoreNotFound(r.Delete(ctx, o, unchanged(o))); err != nil {
				failed = append(failed, fmt.Errorf("delete reservation %s: %w", o.Name, err))
			}
		}
	}
	err := errors.Join(failed...)
	if err != nil {
		r.recorder.Eventf(pool, corev1.EventTypeWarning, "OverlappingReservationCleanupFailed",
			"failed to clean up overlapping reservations: %v", err)
	}
	return err
}

// unchanged returns the precondition that an object still has the UID and version that were read.
func unchanged(obj metav1.Object) client.Preconditions {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// overlaps returns the names of the network's other pools that share addresses with this pool. Pools of different nodes
// for one range do not count: they share it according to the slices of a NodeSlicePool.
func (r *poolReconciler) overlaps(ctx context.Context, pool *v1alpha1.IPPool,
	cidr netip.Prefix,
) (names []string, err error) {
	network, node := v1alpha1.NetworkAndNode(pool.Name, pool.Spec.Range)
	others, err := overlapping(ctx, r, pool.Namespace, network, cidr)
	if err != nil {
		return nil, fmt.Errorf("list overlapping pools: %w", err)
	}
	for i := range others {
		other := &others[i]
		_, othersNode := v1alpha1.NetworkAndNode(other.Name, other.Spec.Range)
		sliced := other.Spec.Range == pool.Spec.Range && node != "" && othersNode != "" && node != othersNode
		if other.Name != pool.Name && !sliced {
			names = append(names, fmt.Sprintf("%s (%s)", other.Name, other.Spec.Range))
		}
	}
	return names, nil
}
