package endpointslicemirroring

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// mirrored reports whether the Endpoints are mirrored: nothing in them says otherwise, and there is a Service of their
// name that has no selector. If it has one, the endpointslice controller makes the slices. Either argument may be nil.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go,
// syncEndpoints
func mirrored(ep *corev1.Endpoints, svc *corev1.Service) bool {
	return ep != nil && !excluded(ep) && svc != nil && svc.Spec.Selector == nil
}

// excluded reports whether the Endpoints themselves forbid that they are mirrored: by a label, or because they are a
// lock for electing a leader, which changes every few seconds.
func excluded(ep *corev1.Endpoints) bool {
	return ep.Labels[discoveryv1.LabelSkipMirror] == "true" || serving.ElectsLeader(ep.Annotations)
}

// endpointsEvents queues Endpoints that change, unless they were excluded before and are so now.
func endpointsEvents() handler.EventHandler[*corev1.Endpoints, reconcile.Request] {
	return handler.EventHandler[*corev1.Endpoints, reconcile.Request]{
		OnAdd: func(_ context.Context, ep *corev1.Endpoints, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			if !excluded(ep) {
				q.Add(reconcile.RequestFor(ep))
			}
		},
		OnUpdate: func(_ context.Context, old, ep *corev1.Endpoints, q reconcile.Enqueuer[reconcile.Request]) {
			if !excluded(old) || !excluded(ep) {
				q.Add(reconcile.RequestFor(ep))
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Endpoints],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			if !excluded(gone.Object) {
				q.Add(reconcile.RequestFor(gone.Object))
			}
		},
	}
}

// serviceEvents queues the Endpoints of a Service that comes, goes, or gets or loses its selector. A Service with a
// selector has no mirrored slices.
func serviceEvents() handler.EventHandler[*corev1.Service, reconcile.Request] {
	return handler.EventHandler[*corev1.Service, reconcile.Request]{
		OnAdd: func(_ context.Context, svc *corev1.Service, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			if svc.Spec.Selector == nil {
				q.Add(reconcile.RequestFor(svc))
			}
		},
		OnUpdate: func(_ context.Context, old, svc *corev1.Service, q reconcile.Enqueuer[reconcile.Request]) {
			if (old.Spec.Selector == nil) != (svc.Spec.Selector == nil) {
				q.Add(reconcile.RequestFor(svc))
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Service],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			if gone.Object.Spec.Selector == nil {
				q.Add(reconcile.RequestFor(gone.Object))
			}
		},
	}
}
