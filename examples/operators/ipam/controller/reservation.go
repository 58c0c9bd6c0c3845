package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// reservationReconciler deletes reservations whose Pod no longer needs them, including those that no pool knows of.
type reservationReconciler struct {
	client.Client
	options  Options
	recorder events.Recorder
}

func (r *reservationReconciler) setup(mgr ctrl.Manager) error {
	byPod := wake(r, func() *v1alpha1.OverlappingRangeIPReservationList {
		return &v1alpha1.OverlappingRangeIPReservationList{}
	}, func(obj informer.Object) []client.ListOption {
		return []client.ListOption{client.MatchingFields{podField: podRef(obj)}}
	}, func(list *v1alpha1.OverlappingRangeIPReservationList) (requests []ctrl.Request) {
		for i := range list.Items {
			requests = append(requests, reconcile.RequestFor(&list.Items[i]))
		}
		return requests
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("overlappingrange").
		For(&v1alpha1.OverlappingRangeIPReservation{},
			builder.WithPredicates(predicate.GenerationChanged[informer.Object]())).
		Watches(&corev1.Pod{}, byPod, whenFactsChange()).
		Complete(r)
}

// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=overlappingrangeipreservations,verbs=list;watch;delete
// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=overlappingrangeipreservations/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile implements ctrl.Reconciler.
func (r *reservationReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var reservation v1alpha1.OverlappingRangeIPReservation
	if err := r.Get(ctx, request.NamespacedName, &reservation); err != nil || reservation.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	helper, err := controllerutil.NewPatchHelper(r, &reservation)
	if err != nil {
		return ctrl.Result{}, err
	}
	s := ready(ReasonValidated, "referenced pod exists")
	if reservation.Spec.PodRef == "" {
		s = stalled(ReasonNoPodRef, "spec.podref is empty")
	} else if needed, err := r.needed(ctx, reservation.Spec.PodRef); err != nil {
		return ctrl.Result{}, err
	} else if !needed {
		return ctrl.Result{}, r.remove(ctx, &reservation)
	}
	news := s.set(&reservation.Status.Conditions, reservation.Generation)
	if err := helper.Patch(ctx, &reservation); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if news && s.reason == ReasonNoPodRef {
		r.recorder.Eventf(&reservation, s.eventType(), s.reason, "%s", s.message)
	}
	return ctrl.Result{}, nil
}

// needed reports whether the Pod of a reference needs an address. It asks the server before it returns false.
func (r *reservationReconciler) needed(ctx context.Context, ref string) (bool, error) {
	key, is := parsePodRef(ref)
	if !is {
		return false, nil
	}
	for _, o := range []client.ReadOptions{client.ReadOnly, client.Live} {
		pod := &corev1.Pod{}
		if err := r.Get(ctx, key, pod, o); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("get pod %s: %w", key, err)
		} else if err != nil {
			pod = nil
		}
		if r.options.judgePod(pod) != orphaned {
			return true, nil
		}
	}
	return false, nil
}

// remove deletes a reservation, unless it has changed since it was read.
func (r *reservationReconciler) remove(ctx context.Context, reservation *v1alpha1.OverlappingRangeIPReservation) error {
	switch err := r.Delete(ctx, reservation, unchanged(reservation)); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("delete reservation: %w", err)
	case err != nil:
		return nil // the pool's pass was faster, and counts it
	}
	r.options.Metrics.reservationDeleted()
	r.recorder.Eventf(reservation, corev1.EventTypeNormal, "OrphanedReservationDeleted", "pod %q does not need it",
		reservation.Spec.PodRef)
	ctrl.LoggerFrom(ctx).Info("Orphaned reservation was deleted", "podRef", reservation.Spec.PodRef)
	return nil
}
