package endpointslice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// serviceIndex finds the slices that this controller manages for a Service, by the Service's namespace and name.
const serviceIndex = "endpointslice/service"

func indexByService(slice *discoveryv1.EndpointSlice) ([]string, error) {
	if !managed(slice) {
		return nil, nil
	}
	return []string{serviceOf(slice).String()}, nil
}

// managed reports whether the slice is marked as this controller's.
func managed(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == ManagedBy
}

// serviceOf returns the Service that the slice's label names. Its name is empty if there is no label.
func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// sliceEvents queues the Service of a slice that somebody else has created, changed or deleted, after a delay that
// gathers several changes. The controller's own writes cause events, too; generations tells them apart. Slices that
// exist at the start queue nothing, because their Services are queued.
//
// A sync that waits for the cache to show the controller's last writes is queued at once.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpointslice/endpointslice_controller.go, onEndpointSliceAdd,
// onEndpointSliceUpdate and onEndpointSliceDelete
func (c *controller) sliceEvents() handler.EventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	return handler.EventHandler[*discoveryv1.EndpointSlice, reconcile.Request]{
		OnAdd: func(_ context.Context, slice *discoveryv1.EndpointSlice, initial bool,
			q reconcile.Enqueuer[reconcile.Request],
		) {
			if !managed(slice) {
				return
			}
			c.gate.Wake(serviceOf(slice), q)
			if !initial && !c.left.ours(serviceOf(slice), slice) {
				c.later(slice, q)
			}
		},
		OnUpdate: func(_ context.Context, old, slice *discoveryv1.EndpointSlice,
			q reconcile.Enqueuer[reconcile.Request],
		) {
			if !managed(slice) && !managed(old) {
				return
			}
			c.gate.Wake(serviceOf(slice), q)
			moved := serviceOf(old) != serviceOf(slice)
			if moved {
				c.later(old, q)
			}
			if moved || managed(old) != managed(slice) || c.changedByOthers(old, slice) {
				c.later(slice, q)
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*discoveryv1.EndpointSlice],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			slice := gone.Object
			if !managed(slice) {
				return
			}
			expected := c.left.gone(serviceOf(slice), slice.UID)
			c.gate.Wake(serviceOf(slice), q)
			if _, served := c.services.Get(slice.Namespace, serviceOf(slice).Name); served && !expected {
				c.later(slice, q)
			}
		},
	}
}

// changedByOthers reports whether somebody else has changed what this controller writes, or has deleted a slice that a
// finalizer holds back. It ignores changes that do not raise the generation: they concern nothing that this controller
// writes.
func (c *controller) changedByOthers(old, slice *discoveryv1.EndpointSlice) bool {
	changed := old.Generation != slice.Generation || (old.DeletionTimestamp == nil) != (slice.DeletionTimestamp == nil)
	return changed && !c.left.ours(serviceOf(slice), slice)
}

func (c *controller) later(slice *discoveryv1.EndpointSlice, q reconcile.Enqueuer[reconcile.Request]) {
	if key := serviceOf(slice); key.Name != "" {
		q.AddAfter(reconcile.Request{NamespacedName: key}, c.sliceDelay)
	}
}

// nodeEvents queues the Services that have pods on a node that is new or has changed its zone, and those whose hints
// depend on the CPUs of each zone. It looks at all pods, but such events are rare.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpointslice/endpointslice_controller.go, updateNode and
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
