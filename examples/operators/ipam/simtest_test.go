package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// Pods with addresses come and go, also under the name of another; a network is cut into slices, loses a node and goes.
func TestSimulatedLife(t *testing.T) {
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	simtest.Check(t, simtest.Scenario{
		Scheme:  scheme,
		Objects: operator.Definitions(t),
		Build: func(e *simtest.Env) (simtest.Program, error) {
			return controller.New(context.Background(), e.Config(), ctrl.Options{}, controller.Defaults())
		},
		Roles: simulated.Roles(t, "manifests/role.yaml", "manifests/operator.yaml"),
		Others: []func(*simtest.Env) (simtest.Program, error){simulated.GarbageCollector(
			v1alpha1.GroupVersion.WithResource("nodeslicepools").GroupResource(),
			multus.GroupVersion.WithResource("network-attachment-definitions").GroupResource(),
		)},
		Budget: 2 * time.Second,
		Script: liveWithAddresses,
		Always: map[string]func(s *simtest.State) error{
			"a Pod keeps its address":    addressesKept,
			"no two nodes share a slice": slicesDisjoint,
		},
	})
}

var simulatedPool = &v1alpha1.IPPool{
	ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "10.0.0.0-24"},
	Spec:       v1alpha1.IPPoolSpec{Range: "10.0.0.0/24", Allocations: map[string]v1alpha1.IPAllocation{}},
}

// runs creates a running Pod, and allocates an address to it, as the CNI plugin does.
func runs(u *simtest.User, name, key string) {
	u.Create(pod(name, ""))
	allocation := v1alpha1.IPAllocation{ContainerID: key, PodRef: namespace + "/" + name, IfName: "net1"}
	simtest.Update(u, simulatedPool, func(p *v1alpha1.IPPool) {
		p.Spec.Allocations = maps.Clone(p.Spec.Allocations)
		if p.Spec.Allocations == nil {
			p.Spec.Allocations = map[string]v1alpha1.IPAllocation{}
		}
		p.Spec.Allocations[key] = allocation
	})
	ip, _ := ranges.At(netip.MustParsePrefix(simulatedPool.Spec.Range), key)
	u.Create(&v1alpha1.OverlappingRangeIPReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ReservationName("", ip)},
		Spec:       v1alpha1.OverlappingRangeIPReservationSpec(allocation),
	})
	simtest.UpdateStatus(u, pod(name, ""), func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
}

// gone removes a Pod at once.
func gone(u *simtest.User, name string) {
	u.Do("remove Pod "+name, func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, pod(name, ""), client.GracePeriodSeconds(0)))
	})
}

func liveWithAddresses(u *simtest.User) {
	u.Create(simulatedPool)
	runs(u, "a", "1")
	runs(u, "b", "2")
	u.Settle()
	gone(u, "b")
	u.Settle()
	gone(u, "a")
	u.Create(pod("a", ""))
	u.Settle()
	u.Create(node("node-1"))
	u.Create(node("node-2"))
	network := &multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nad"}}
	network.Spec.Config = `{"name":"net","ipam":{"type":"whereabouts","range":"11.0.0.0/16","node_slice_size":"18"}}`
	u.Create(network)
	u.Settle()
	u.Delete(node("node-1"))
	u.Create(node("node-3"))
	u.Settle()
	u.Delete(network)
	u.Delete(simulatedPool)
	u.Settle()
	// An operator that has not seen a reservation when its pool goes keeps it for as long as there is the Pod.
	gone(u, "a")
	u.Settle()
}

// addressesKept: while a Pod runs, its address is allocated to it: Pod a has the first, b the second.
func addressesKept(s *simtest.State) error {
	p, ok := simtest.Get[*v1alpha1.IPPool](s, namespace, simulatedPool.Name)
	if !ok || p.DeletionTimestamp != nil {
		return nil
	}
	for name, key := range map[string]string{"a": "1", "b": "2"} {
		holder, ok := simtest.Get[*corev1.Pod](s, namespace, name)
		if !ok || holder.Status.Phase != corev1.PodRunning || holder.DeletionTimestamp != nil {
			continue
		}
		if p.Spec.Allocations[key].PodRef != namespace+"/"+name {
			return fmt.Errorf("pod %s has lost its address", name)
		}
	}
	return nil
}

// slicesDisjoint: a slice belongs to one node.
func slicesDisjoint(s *simtest.State) error {
	for _, p := range simtest.List[*v1alpha1.NodeSlicePool](s, "") {
		nodes := map[string]string{}
		for _, a := range p.Status.Allocations {
			if other, taken := nodes[a.SliceRange]; taken {
				return fmt.Errorf("%s belongs to %s and to %s", a.SliceRange, other, a.NodeName)
			}
			nodes[a.SliceRange] = a.NodeName
		}
	}
	return nil
}
