package simulated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// GarbageCollector returns the function that builds a garbage collector of a few resources. To watch all resources, as
// a cluster's does, would make runs many times slower.
func GarbageCollector(of ...schema.GroupResource) func(*simtest.Env) (simtest.Program, error) {
	return func(e *simtest.Env) (simtest.Program, error) {
		config := e.Config()
		server, err1 := discovery.NewDiscoveryClientForConfig(config)
		sender, err2 := events.New(config, events.Options{})
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		groups, err := restmapper.GetAPIGroupResources(server)
		if err != nil {
			return nil, fmt.Errorf("discover resources: %w", err)
		}
		gc, err := garbagecollector.New(config, sender.Recorder(garbagecollector.Component), garbagecollector.Options{
			Ignored: others(groups, of), DiscoveryPeriod: 24 * time.Hour,
			// The mapper that asks when it needs to holds a mutex meanwhile, on which a bubble would wait for ever.
			Mapper: restmapper.NewDiscoveryRESTMapper(groups),
		})
		return together{gc, sender}, err
	}
}

// others returns the resources that are not listed.
func others(groups []*restmapper.APIGroupResources, listed []schema.GroupResource) (rest []schema.GroupResource) {
	for _, g := range groups {
		for _, resources := range g.VersionedResources {
			for _, r := range resources {
				resource := schema.GroupResource{Group: g.Group.Name, Resource: r.Name}
				if !slices.Contains(listed, resource) {
					rest = append(rest, resource)
				}
			}
		}
	}
	return rest
}

// together are programs that run until all have ended.
type together []simtest.Program

// Run implements [simtest.Program].
func (t together) Run(ctx context.Context) error {
	errs := make([]error, len(t))
	var all sync.WaitGroup
	for i, p := range t {
		all.Go(func() { errs[i] = p.Run(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Node builds a node that takes every pod. It gives pods no address, because that would depend on the order in which
// they come. The kubelet of package localapi/kubelet does more.
func Node(e *simtest.Env) (simtest.Program, error) {
	m, err := ctrl.NewManager(e.Config(), ctrl.Options{})
	if err != nil {
		return nil, err
	}
	n := &node{m.GetClient()}
	return m, ctrl.NewControllerManagedBy(m).Named("node").For(&corev1.Pod{}).Complete(n)
}

// nodeName is the name of the node.
const nodeName = "node-1"

type node struct{ client.Client }

// Reconcile binds a pod, reports it ready, and removes it once it is deleted.
func (n *node) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := n.Get(ctx, r.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var err error
	switch {
	case pod.DeletionTimestamp != nil:
		err = n.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0))
	case pod.Spec.NodeName == "":
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeName}}
		err = n.SubResource("binding").Create(ctx, pod, binding)
	case pod.Status.Phase == "", pod.Status.Phase == corev1.PodPending:
		ready := corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: ptr.To(metav1.Now()), Conditions: []corev1.PodCondition{ready},
		}
		err = n.Status().Update(ctx, pod)
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
