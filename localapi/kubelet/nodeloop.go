package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

func requestForNode(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: nodeName(i)}}
}

// nodeEvents queues the nodes that belong to this kubelet.
func (k *fake) nodeEvents() handler.EventHandler[*corev1.Node, reconcile.Request] {
	return handler.EnqueueMapped(func(_ context.Context, node *corev1.Node) []reconcile.Request {
		if _, ours := k.index[node.Name]; !ours {
			return nil
		}
		return []reconcile.Request{reconcile.RequestFor(node)}
	})
}

// placeEvents queues the unplaced pods when a node appears, or changes in a way that may make room for them.
func (k *fake) placeEvents() handler.EventHandler[*corev1.Node, reconcile.Request] {
	wake := func(q reconcile.Enqueuer[reconcile.Request]) {
		for _, request := range k.records.waiting() {
			q.Add(request)
		}
	}
	return handler.EventHandler[*corev1.Node, reconcile.Request]{
		OnAdd:    func(_ context.Context, _ *corev1.Node, _ bool, q reconcile.Enqueuer[reconcile.Request]) { wake(q) },
		OnUpdate: func(_ context.Context, _, _ *corev1.Node, q reconcile.Enqueuer[reconcile.Request]) { wake(q) },
		OnDelete: func(context.Context, informer.Deleted[*corev1.Node], reconcile.Enqueuer[reconcile.Request]) {},
	}
}

// reconcileNode creates one of the kubelet's nodes if it is missing, and brings its status up to date.
func (k *fake) reconcileNode(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	i, ours := k.index[key.Name]
	if !ours {
		return reconcile.Result{}, nil
	}
	node, found := k.nodes.Get("", key.Name)
	if !found {
		err := k.client.Create(ctx, newNode(i, k.options.PodsPerNode, time.Now()))
		if apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, nil // the node's event will queue it again
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("create node: %w", err)
		}
		k.counts.writes.Add(1)
		return reconcile.Result{}, nil
	}
	if node.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	status := wantedNodeStatus(node, i, k.options.PodsPerNode, metav1.Now().Rfc3339Copy())
	if sameNodeStatus(node.Status, status) {
		return reconcile.Result{}, nil
	}
	node = node.DeepCopy()
	node.Status = status
	if err := k.client.Status().Update(ctx, node); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil // the event of the change will queue it again
		}
		return reconcile.Result{}, fmt.Errorf("update status of node: %w", err)
	}
	k.counts.writes.Add(1)
	return reconcile.Result{}, nil
}
