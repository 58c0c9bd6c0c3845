package serving

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// PodEvents queues the Services that a change of a pod concerns, after batchPeriod, so that one sync serves all changes
// until then. Zero means no delay.
func (f *Finder) PodEvents(batchPeriod time.Duration) handler.EventHandler[*corev1.Pod, reconcile.Request] {
	queue := func(q reconcile.Enqueuer[reconcile.Request], services []reconcile.Request) {
		for _, svc := range services {
			if batchPeriod > 0 {
				q.AddAfter(svc, batchPeriod)
			} else {
				q.Add(svc)
			}
		}
	}
	return handler.EventHandler[*corev1.Pod, reconcile.Request]{
		OnAdd: func(ctx context.Context, pod *corev1.Pod, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, f.Selecting(ctx, pod.Namespace, pod.Labels))
		},
		OnUpdate: func(ctx context.Context, old, pod *corev1.Pod, q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, f.concerned(ctx, old, pod))
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[*corev1.Pod],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			queue(q, f.Selecting(ctx, gone.Object.Namespace, gone.Object.Labels))
		},
	}
}

// concerned returns the Services whose addresses may change because the pod did. If only the pod's labels changed,
// these are the Services that selected it either before or after, but not both.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, GetPodUpdateProjectionKey and GetServicesToUpdate
func (f *Finder) concerned(ctx context.Context, old, pod *corev1.Pod) []reconcile.Request {
	changed, relabelled := podChanged(old, pod), !maps.Equal(old.Labels, pod.Labels)
	if old.ResourceVersion == pod.ResourceVersion || (!changed && !relabelled) {
		return nil
	}
	now := f.Selecting(ctx, pod.Namespace, pod.Labels)
	if !relabelled {
		return now
	}
	before := f.Selecting(ctx, old.Namespace, old.Labels)
	left := without(before, now)
	if changed {
		return append(now, left...)
	}
	return append(without(now, before), left...)
}

func without(all, some []reconcile.Request) []reconcile.Request {
	return slices.DeleteFunc(slices.Clone(all), func(r reconcile.Request) bool { return slices.Contains(some, r) })
}

// podChanged reports whether something changed that is published of a pod, or that decides whether it is published. It
// need not compare other published fields, which never change.
func podChanged(old, pod *corev1.Pod) bool {
	return (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		pods.Terminal(old) != pods.Terminal(pod) ||
		pods.Ready(old) != pods.Ready(pod) ||
		old.Status.PodIP != pod.Status.PodIP ||
		!slices.Equal(old.Status.PodIPs, pod.Status.PodIPs) ||
		old.Spec.NodeName != pod.Spec.NodeName ||
		old.Spec.Hostname != pod.Spec.Hostname || old.Spec.Subdomain != pod.Spec.Subdomain
}
