package namespaces

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/reconcile"
)

// rootName is the ConfigMap in every namespace from which pods learn which certificates of the server to trust.
const (
	rootName        = "kube-root-ca.crt"
	rootKey         = "ca.crt"
	rootAnnotation  = "kubernetes.io/description"
	rootDescription = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal " +
		"endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across " +
		"distributions of Kubernetes clusters."
)

// reconcileRoot creates the ConfigMap of an active namespace that lacks it, and restores one that was changed. Only the
// presence of the description counts, not its text.
//
// A write that fails because the cache is behind is not retried: the event that the cache lacks queues the namespace.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/certificates/rootcacertpublisher/publisher.go, syncNamespace.
func (c *Controller) reconcileRoot(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	ns, found := c.namespaces.Get("", key.Name)
	if !found || ns.Status.Phase != corev1.NamespaceActive {
		return reconcile.Result{}, nil
	}
	data := map[string]string{rootKey: string(c.rootCA)}
	config, found := c.roots.Get(ns.Name, rootName)
	if found && maps.Equal(config.Data, data) && config.Annotations[rootAnnotation] != "" {
		return reconcile.Result{}, nil
	}
	verb, write := "update", func(o *corev1.ConfigMap) error { return c.client.Update(ctx, o) }
	if !found {
		verb, write = "create", func(o *corev1.ConfigMap) error { return c.client.Create(ctx, o) }
		config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: rootName, Namespace: ns.Name}}
	}
	config = config.DeepCopy()
	config.Data = data
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, rootAnnotation, rootDescription)
	err := write(config)
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, fmt.Errorf("%s config map %q: %w", verb, rootName, err)
	}
	return reconcile.Result{}, nil
}
