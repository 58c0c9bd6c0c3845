// Package chapter10 has the programs of the chapter about Endpoints and EndpointSlice: two controllers of Endpoints
// that are wrong, beside the real one, and what the real ones do in small clusters.
package chapter10

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// perPod is the first design of a controller of Endpoints: its key is a Pod.
type perPod struct{ client.Client }

// Reconcile puts the address of one Pod into the Endpoints of all Services that select it, and takes it out of the
// others.
func (p *perPod) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := p.Get(ctx, r.NamespacedName, &pod); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	var services corev1.ServiceList
	if err := p.List(ctx, &services, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	for i := range services.Items {
		svc := &services.Items[i]
		in := ready(&pod) && labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(pod.Labels))
		if err := p.put(ctx, svc, r.Name, pod.Status.PodIP, in); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// put makes sure that the Endpoints of the Service have the address of the Pod, or that they do not have it.
func (p *perPod) put(ctx context.Context, svc *corev1.Service, pod, ip string, in bool) error {
	var ep corev1.Endpoints
	err := p.Get(ctx, client.ObjectKeyFromObject(svc), &ep)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	var addresses []corev1.EndpointAddress
	if len(ep.Subsets) > 0 {
		addresses = ep.Subsets[0].Addresses
	}
	at := slices.IndexFunc(addresses, func(a corev1.EndpointAddress) bool { return a.TargetRef.Name == pod })
	switch {
	case in == (at >= 0):
		return nil
	case in:
		addresses = append(addresses, addressOf(pod, ip))
	default:
		addresses = slices.Delete(addresses, at, at+1)
	}
	ep.Subsets = subsetsOf(addresses)
	if err != nil { // There are no Endpoints yet.
		ep.Namespace, ep.Name = svc.Namespace, svc.Name
		return p.Create(ctx, &ep)
	}
	return p.Update(ctx, &ep)
}

// setup builds the controller.
func (p *perPod) setup(mgr ctrl.Manager) error {
	p.Client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("per-pod").For(&corev1.Pod{}).Complete(p)
}
