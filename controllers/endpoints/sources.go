package endpoints

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// endpointsEvents queues Endpoints that were deleted while their Service exists, which are then created again, and
// Endpoints that have no Service, which are then deleted. At the start it queues all Endpoints except locks for
// electing a leader. Later it queues only those with the controller's label: others may be written before their Service
// is.
//
// A manual edit queues nothing: it stays until something else causes a sync.
func (c *controller) endpointsEvents() handler.EventHandler[*corev1.Endpoints, reconcile.Request] {
	return handler.EventHandler[*corev1.Endpoints, reconcile.Request]{
		OnAdd: func(_ context.Context, ep *corev1.Endpoints, initial bool, q reconcile.Enqueuer[reconcile.Request]) {
			c.gate.Wake(client.ObjectKeyFromObject(ep), q)
			_, served := c.services.Get(ep.Namespace, ep.Name)
			if !serving.ElectsLeader(ep.Annotations) &&
				(initial || (!served && ep.Labels[managedByLabel] == managedByValue)) {
				q.Add(reconcile.RequestFor(ep))
			}
		},
		OnUpdate: func(_ context.Context, _, ep *corev1.Endpoints, q reconcile.Enqueuer[reconcile.Request]) {
			c.gate.Wake(client.ObjectKeyFromObject(ep), q)
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Endpoints],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			key := reconcile.RequestFor(gone.Object)
			c.gate.Wake(key.NamespacedName, q)
			if _, served := c.services.Get(key.Namespace, key.Name); served {
				q.Add(key)
			}
		},
	}
}
