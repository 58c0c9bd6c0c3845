package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// networkReconciler validates network attachment definitions. They have no status, so it reports errors as events. The
// controller of NodeSlicePools acts on them.
type networkReconciler struct {
	client.Client
	recorder events.Recorder
}

func (r *networkReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("network").
		For(&multus.NetworkAttachmentDefinition{},
			builder.WithPredicates(predicate.GenerationChanged[informer.Object]())).
		Complete(r)
}

// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile implements ctrl.Reconciler.
func (r *networkReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var nad multus.NetworkAttachmentDefinition
	if err := r.Get(ctx, request.NamespacedName, &nad); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := check(&nad); err != nil {
		r.recorder.Eventf(&nad, corev1.EventTypeWarning, ReasonInvalidConfig, "%v", err)
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	return ctrl.Result{}, nil
}

// check returns what is wrong with a definition.
func check(nad *multus.NetworkAttachmentDefinition) error {
	network, err := nad.Sliced()
	if err != nil || network == nil {
		return err
	}
	_, err = ranges.Cut(network.Range, network.SliceSize)
	return err
}
