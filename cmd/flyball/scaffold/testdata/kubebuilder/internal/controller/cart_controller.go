package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shopv1 "example.com/moved/api/v1"
)

type CartReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

func (r *CartReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cart shopv1.Cart
	if err := r.Get(ctx, req.NamespacedName, &cart); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if controllerutil.AddFinalizer(&cart, "shop.example.com/cart") {
		if err := r.Update(ctx, &cart); err != nil {
			return ctrl.Result{}, err
		}
	}
	if cart.Name == "none" {
		return ctrl.Result{}, reconcile.TerminalError(context.Canceled)
	}
	logf.FromContext(ctx).Info("Reconciled", "cart", cart.Name)
	return ctrl.Result{}, nil
}

func (r *CartReconciler) SetupWithManager(mgr ctrl.Manager) error {
	toCart := func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&shopv1.Cart{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(toCart), builder.WithPredicates()).
		Named("cart").
		Complete(r)
}
