package endpointslice

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// nodeEvents queues the Services that have pods on a node that is new or has changed its zone, and those whose hints
// depend on the CPUs of each zone. It looks at all pods, but such events are rare.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, updateNode and
// checkNodeTopologyDistribution
func (c *controller) nodeEvents() handler.EventHandler[*corev1.Node, reconcile.Request] {
	queueByPods := func(ctx context.Context, node string, q reconcile.Enqueuer[reconcile.Request]) {
		for pod := range c.pods.All() {
			if pod.Spec.NodeName != node {
				continue
			}
			for _, svc := range c.finder.Selecting(ctx, pod.Namespace, pod.Labels) {
				q.AddAfter(svc, c.sliceDelay)
			}
		}
	}
	queueHinted := func(q reconcile.Enqueuer[reconcile.Request]) {
		for _, key := range c.hinted.All() {
			q.AddAfter(reconcile.Request{NamespacedName: key}, c.sliceDelay)
		}
	}
	return handler.EventHandler[*corev1.Node, reconcile.Request]{
		OnAdd: func(ctx context.Context, node *corev1.Node, initial bool, q reconcile.Enqueuer[reconcile.Request]) {
			if !initial {
				queueByPods(ctx, node.Name, q)
				queueHinted(q)
			}
		},
		OnUpdate: func(ctx context.Context, old, node *corev1.Node, q reconcile.Enqueuer[reconcile.Request]) {
			if hints.Zone(old) != hints.Zone(node) {
				queueByPods(ctx, node.Name, q)
			}
			if hints.Zone(old) != hints.Zone(node) || hints.NodeReady(old) != hints.NodeReady(node) {
				queueHinted(q)
			}
		},
		OnDelete: func(_ context.Context, _ informer.Deleted[*corev1.Node], q reconcile.Enqueuer[reconcile.Request]) {
			queueHinted(q)
		},
	}
}
