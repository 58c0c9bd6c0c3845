package namespaces

import (
	"context"
	"errors"
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

// reconcileAccounts creates the service accounts that an active namespace lacks.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/serviceaccount/serviceaccounts_controller.go, syncNamespace.
func (c *Controller) reconcileAccounts(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	ns, found := c.config.Namespaces.Get("", key.Name)
	if !found || ns.Status.Phase != corev1.NamespaceActive {
		return reconcile.Result{}, nil
	}
	var errs []error
	for _, name := range c.options.ServiceAccounts {
		if _, found := c.config.ServiceAccounts.Get(ns.Name, name); found {
			continue
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns.Name}}
		err := c.config.Client.Create(ctx, account)
		if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			continue // the cache is behind
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("create service account %q: %w", name, err))
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}
