package chapter10

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// comparer is the second design: its key is a Service, and it writes only what differs from its cache.
type comparer struct{ client.Client }

// Reconcile makes the Endpoints of a Service list the Pods with the label app=web.
func (c *comparer) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.MatchingLabels{"app": "web"}); err != nil {
		return ctrl.Result{}, err
	}
	var addresses []corev1.EndpointAddress
	for i := range pods.Items {
		if ready(&pods.Items[i]) {
			addresses = append(addresses, addressOf(pods.Items[i].Name, pods.Items[i].Status.PodIP))
		}
	}
	var ep corev1.Endpoints
	if err := c.Get(ctx, r.NamespacedName, &ep, client.Lagging); err != nil {
		return ctrl.Result{}, err
	}
	wanted := subsetsOf(addresses)
	if equality.Semantic.DeepEqual(ep.Subsets, wanted) {
		return ctrl.Result{}, nil // There is nothing to do.
	}
	ep.Subsets = wanted
	return ctrl.Result{}, c.Update(ctx, &ep)
}

// setup builds the controller.
func (c *comparer) setup(mgr ctrl.Manager) error {
	c.Client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("comparer").For(&corev1.Service{}).
		Watches(&corev1.Pod{}, handler.EnqueueMapped(func(_ context.Context, pod ctrl.Object) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: "web"}}}
		})).Complete(c)
}

// ready reports whether a Pod has an address and is ready.
func ready(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func addressOf(pod, ip string) corev1.EndpointAddress {
	return corev1.EndpointAddress{IP: ip, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod}}
}

// subsetsOf lists addresses at port 8080, or nothing.
func subsetsOf(addresses []corev1.EndpointAddress) []corev1.EndpointSubset {
	if len(addresses) == 0 {
		return nil
	}
	slices.SortFunc(addresses, func(a, b corev1.EndpointAddress) int { return cmp.Compare(a.IP, b.IP) })
	port := corev1.EndpointPort{Port: 8080, Protocol: corev1.ProtocolTCP}
	return []corev1.EndpointSubset{{Addresses: addresses, Ports: []corev1.EndpointPort{port}}}
}
