package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// infoName is the ConfigMap that names the owner of a control plane. It is in the default namespace.
const infoName = "project-info"

// tenantReconciler maintains what belongs in every control plane: the default namespace with the project-info, and a
// label on each namespace that names its Project. Many control planes have namespaces of the same name; the request
// names the control plane.
type tenantReconciler struct{}

func (r tenantReconciler) setup(fleet *multicluster.Manager) error {
	toDefault := handler.EnqueueMapped[informer.Object](func(_ context.Context, obj informer.Object) []ctrl.Request {
		if obj.GetNamespace() != metav1.NamespaceDefault {
			return nil
		}
		return []ctrl.Request{
			reconcile.RequestFor(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}),
		}
	})
	return multicluster.ControllerManagedBy(fleet).
		Named("tenant").
		For(&corev1.Namespace{}).
		Watches(&corev1.ConfigMap{}, toDefault).
		// A control plane may stop answering.
		WithOptions(reconcile.Options[multicluster.Request]{Timeout: 30 * time.Second}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (tenantReconciler) Reconcile(ctx context.Context, request multicluster.Request) (ctrl.Result, error) {
	c, ok := multicluster.ClusterFromContext(ctx)
	if !ok {
		return ctrl.Result{}, nil // it has left the fleet
	}
	if request.Name == metav1.NamespaceDefault {
		if err := prepare(ctx, c, c.Name(), c.Info().Identity); err != nil {
			return ctrl.Result{}, err
		}
	}
	n := &corev1.Namespace{}
	if err := c.Get(ctx, request.NamespacedName, n); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if n.Labels[api.ProjectNameLabel] == c.Name() {
		return ctrl.Result{}, nil
	}
	before := n.DeepCopy()
	metav1.SetMetaDataLabel(&n.ObjectMeta, api.ProjectNameLabel, c.Name())
	return ctrl.Result{}, client.IgnoreNotFound(c.Patch(ctx, n, client.MergeFrom(before)))
}

// prepare creates in a control plane what each one has, unless it exists.
func prepare(ctx context.Context, c client.Client, name, uid string) error {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(n), n); apierrors.IsNotFound(err) {
		n.Labels = map[string]string{api.ProjectNameLabel: name}
		if err := c.Create(ctx, n); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("default namespace: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("default namespace: %w", err)
	}
	want := map[string]string{"name": name, "uid": uid}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: infoName}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, info, func() error {
		if !maps.Equal(info.Data, want) {
			info.Data = want
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", infoName, err)
	}
	return nil
}
