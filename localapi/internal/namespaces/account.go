package namespaces

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

func requestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// deletedAccounts queues the namespaces of deleted service accounts.
func deletedAccounts() handler.EventHandler[*corev1.ServiceAccount, reconcile.Request] {
	return handler.EventHandler[*corev1.ServiceAccount, reconcile.Request]{
		OnDelete: func(_ context.Context, d informer.Deleted[*corev1.ServiceAccount],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			q.Add(requestFor(d.Object.Namespace))
		},
	}
}

// defaultAccount is the service account that every namespace has.
const defaultAccount = "default"

// reconcileAccounts creates the service account of an active namespace that lacks it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/serviceaccount/serviceaccounts_controller.go, syncNamespace.
func (c *Controller) reconcileAccounts(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	ns, found := c.namespaces.Get("", key.Name)
	if !found || ns.Status.Phase != corev1.NamespaceActive {
		return reconcile.Result{}, nil
	}
	if _, found := c.accounts.Get(ns.Name, defaultAccount); found {
		return reconcile.Result{}, nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultAccount, Namespace: ns.Name}}
	err := c.client.Create(ctx, account)
	if err != nil && !apierrors.IsAlreadyExists(err) && // the cache may be behind
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, fmt.Errorf("create service account %q: %w", defaultAccount, err)
	}
	return reconcile.Result{}, nil
}
