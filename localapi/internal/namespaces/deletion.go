package namespaces

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// deletedNamespaces queues the namespaces that are being deleted.
func deletedNamespaces() handler.EventHandler[*corev1.Namespace, reconcile.Request] {
	add := func(ns *corev1.Namespace, q reconcile.Enqueuer[reconcile.Request]) {
		if ns.DeletionTimestamp != nil {
			q.Add(requestFor(ns.Name))
		}
	}
	return handler.EventHandler[*corev1.Namespace, reconcile.Request]{
		OnAdd: func(_ context.Context, ns *corev1.Namespace, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			add(ns, q)
		},
		OnUpdate: func(_ context.Context, _, ns *corev1.Namespace, q reconcile.Enqueuer[reconcile.Request]) {
			add(ns, q)
		},
	}
}

// lastPods queues a namespace that is being deleted when its last pod is gone. kube-controller-manager would look again
// only after half of the pods' grace period.
//
// A namespace that the cache does not show as being deleted yet is queued later by its own event.
func (c *Controller) lastPods() handler.EventHandler[*corev1.Pod, reconcile.Request] {
	return handler.EventHandler[*corev1.Pod, reconcile.Request]{
		OnDelete: func(_ context.Context, d informer.Deleted[*corev1.Pod], q reconcile.Enqueuer[reconcile.Request]) {
			name := d.Object.Namespace
			ns, found := c.namespaces.Get("", name)
			if found && ns.DeletionTimestamp != nil && len(c.pods.List(name, nil)) == 0 {
				q.Add(requestFor(name))
			}
		},
	}
}

// reconcileDeletion makes one pass over a namespace's deletion. It deletes the content, reports what is left, and
// removes the finalizer if nothing is left. kube-controller-manager first waits 5 s, because another API server that
// shares the store may accept new content for a moment after the deletion. Here no server shares a tenant's objects.
//
// A conflict ends the pass: the event of the conflicting change will start another.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/namespaced_resources_deleter.go, Delete.
func (c *Controller) reconcileDeletion(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	ns := &corev1.Namespace{}
	err := c.client.Get(ctx, key.NamespacedName, ns, client.Live)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("get namespace: %w", err)
	}
	if ns.DeletionTimestamp == nil || len(ns.Spec.Finalizers) == 0 {
		return reconcile.Result{}, nil
	}
	if marked, err := c.markTerminating(ctx, ns); !marked {
		return reconcile.Result{}, err
	}
	found := c.deleteContent(ctx, ns)
	c.report(ctx, ns, found)
	if err := found.err(); err != nil {
		return reconcile.Result{}, err
	}
	if found.wait > 0 {
		// As in upstream's worker: half of the time that the content may take.
		after := time.Duration(int64(found.wait/time.Second)/2+1) * time.Second
		klog.FromContext(ctx).V(4).Info("Content remains in namespace", "namespace", ns.Name, "delay", after)
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return reconcile.Result{}, c.finalize(ctx, ns)
}

// markTerminating sets the phase, for a server that has not done so itself. It returns false on an error, and when the
// pass is over.
func (c *Controller) markTerminating(ctx context.Context, ns *corev1.Namespace) (bool, error) {
	if ns.Status.Phase == corev1.NamespaceTerminating {
		return true, nil
	}
	ns.Status.Phase = corev1.NamespaceTerminating
	err := c.client.Status().Update(ctx, ns)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("mark namespace as terminating: %w", err)
	}
	return true, nil
}

// report brings the conditions up to date. A failure does not stop the pass: the next pass reports again.
func (c *Controller) report(ctx context.Context, ns *corev1.Namespace, found contents) {
	if !setConditions(&ns.Status, found.conditions(), metav1.Now()) {
		return
	}
	if err := c.client.Status().Update(ctx, ns); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot update the conditions of the namespace", "namespace", ns.Name)
	}
}

// finalize removes this controller's finalizer from an empty namespace. If there is no other finalizer, the server then
// removes the namespace.
func (c *Controller) finalize(ctx context.Context, ns *corev1.Namespace) error {
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers,
		func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	err := c.client.SubResource("finalize").Update(ctx, ns)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("finalize namespace: %w", err)
	}
	return nil
}
