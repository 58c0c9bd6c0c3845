package endpoints

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// selectorIndex finds the Services of a namespace whose selector asks for a given label.
const selectorIndex = "endpoints/selector"

// leaderAnnotation marks Endpoints that are a lock for electing a leader and belong to no Service.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// indexBySelector files a Service under one of the labels that its selector asks for: the first, in the order of the
// keys. A pod that the Service selects has that label, so looking up all labels of a pod finds all of its Services,
// and few others, however many there are in the namespace.
func indexBySelector(svc *corev1.Service) ([]string, error) {
	if svc.Spec.Selector == nil {
		return nil, nil // selects nothing
	}
	if len(svc.Spec.Selector) == 0 {
		return []string{selectorValue(svc.Namespace, "", "")}, nil // selects everything
	}
	first := slices.Min(slices.Collect(maps.Keys(svc.Spec.Selector)))
	return []string{selectorValue(svc.Namespace, first, svc.Spec.Selector[first])}, nil
}

// selectorValue is unambiguous: neither a namespace nor a label contains "=", and the former no "/".
func selectorValue(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

// selecting returns the Services that select a pod with these labels, sorted by name.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, getServicesForPod
func (c *controller) selecting(ctx context.Context, namespace string, podLabels map[string]string) []reconcile.Request {
	candidates := []string{selectorValue(namespace, "", "")}
	for key, value := range podLabels {
		candidates = append(candidates, selectorValue(namespace, key, value))
	}
	var found []reconcile.Request
	for _, value := range candidates {
		services, err := c.services.ByIndex(selectorIndex, value)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot find the Services of a pod", "namespace", namespace)
			return nil
		}
		for _, svc := range services {
			if selects(svc.Spec.Selector, podLabels) {
				found = append(found, reconcile.RequestFor(svc))
			}
		}
	}
	slices.SortFunc(found, func(a, b reconcile.Request) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

func selects(selector, podLabels map[string]string) bool {
	for key, want := range selector {
		if value, found := podLabels[key]; !found || value != want {
			return false
		}
	}
	return true
}

// podEvents queues the Services that a pod's change concerns, after the batch period: one sync then serves all
// changes that came in the meantime.
func (c *controller) podEvents() reconcile.EventHandler[*corev1.Pod, reconcile.Request] {
	queue := func(q reconcile.Enqueuer[reconcile.Request], services []reconcile.Request) {
		for _, svc := range services {
			if c.batchPeriod > 0 {
				q.AddAfter(svc, c.batchPeriod)
			} else {
				q.Add(svc)
			}
		}
	}
	return reconcile.EventHandler[*corev1.Pod, reconcile.Request]{
		OnAdd: func(ctx context.Context, pod *corev1.Pod, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, c.selecting(ctx, pod.Namespace, pod.Labels))
		},
		OnUpdate: func(ctx context.Context, old, pod *corev1.Pod, q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, c.concerned(ctx, old, pod))
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[*corev1.Pod], q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, c.selecting(ctx, gone.Object.Namespace, gone.Object.Labels))
		},
	}
}

// concerned returns the Services whose Endpoints may change because the pod did. If only its labels changed, those
// that selected it before and after are not concerned.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, GetPodUpdateProjectionKey and GetServicesToUpdate
func (c *controller) concerned(ctx context.Context, old, pod *corev1.Pod) []reconcile.Request {
	changed, relabelled := podChanged(old, pod), !maps.Equal(old.Labels, pod.Labels)
	if old.ResourceVersion == pod.ResourceVersion || (!changed && !relabelled) {
		return nil
	}
	now := c.selecting(ctx, pod.Namespace, pod.Labels)
	if !relabelled {
		return now
	}
	before := c.selecting(ctx, old.Namespace, old.Labels)
	left := without(before, now)
	if changed {
		return append(now, left...)
	}
	return append(without(now, before), left...)
}

func without(all, some []reconcile.Request) []reconcile.Request {
	return slices.DeleteFunc(slices.Clone(all), func(r reconcile.Request) bool { return slices.Contains(some, r) })
}

// podChanged reports whether something changed that an Endpoints says of a pod, or that decides whether it is in
// there: its addresses, whether it is ready, on its way out, or ended. What else they say of it never changes.
func podChanged(old, pod *corev1.Pod) bool {
	return (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		pods.Terminal(old) != pods.Terminal(pod) ||
		pods.Ready(old) != pods.Ready(pod) ||
		old.Status.PodIP != pod.Status.PodIP ||
		!slices.Equal(old.Status.PodIPs, pod.Status.PodIPs) ||
		old.Spec.NodeName != pod.Spec.NodeName ||
		old.Spec.Hostname != pod.Spec.Hostname || old.Spec.Subdomain != pod.Spec.Subdomain
}

// endpointsEvents brings back Endpoints that were deleted under their Service, and finds those that have none. At the
// start these are all that nobody uses as a lock for electing a leader; later only those that carry our mark: others
// may be written before their Service is.
//
// A manual edit is no event: it stays until something else makes the Service sync.
func (c *controller) endpointsEvents() reconcile.EventHandler[*corev1.Endpoints, reconcile.Request] {
	queueAwaited := func(ep *corev1.Endpoints, q reconcile.Enqueuer[reconcile.Request]) {
		if key := reconcile.RequestFor(ep); c.writes.awaited(key.NamespacedName) {
			q.Add(key)
		}
	}
	return reconcile.EventHandler[*corev1.Endpoints, reconcile.Request]{
		OnAdd: func(_ context.Context, ep *corev1.Endpoints, initial bool, q reconcile.Enqueuer[reconcile.Request]) {
			queueAwaited(ep, q)
			_, served := c.services.Get(ep.Namespace, ep.Name)
			_, lock := ep.Annotations[leaderAnnotation]
			if !lock && (initial || (!served && ep.Labels[managedByLabel] == managedByValue)) {
				q.Add(reconcile.RequestFor(ep))
			}
		},
		OnUpdate: func(_ context.Context, _, ep *corev1.Endpoints, q reconcile.Enqueuer[reconcile.Request]) {
			queueAwaited(ep, q)
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Endpoints], q reconcile.Enqueuer[reconcile.Request]) {
			key := reconcile.RequestFor(gone.Object)
			c.writes.gone(key.NamespacedName, gone.Object.UID)
			if _, served := c.services.Get(key.Namespace, key.Name); served {
				q.Add(key)
			}
		},
	}
}
