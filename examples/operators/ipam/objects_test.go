package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

func (w *World) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.NS, Name: name}
}

func (w *World) ref(pod string) string { return w.NS + "/" + pod }

// Pod creates a Pod in a phase. edit, if not nil, changes it first.
func (w *World) Pod(name string, phase corev1.PodPhase, edit func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: name}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "c:1"}}
	pod.Status.Phase = phase
	if edit != nil {
		edit(pod)
	}
	status := pod.Status
	w.Must(w.Create(w.Ctx, pod))
	pod.Status = status
	w.Must(w.Status().Update(w.Ctx, pod))
	return pod
}

// Running creates running Pods without a network status, and lets the operator hear that they run: as long as it takes
// a Pod for pending, a pool waits for it and reports nothing else.
func (w *World) Running(names ...string) {
	w.Helper()
	for _, name := range names {
		w.Pod(name, corev1.PodRunning, nil)
	}
	time.Sleep(50 * time.Millisecond)
}

// Phase changes the phase of a Pod.
func (w *World) Phase(name string, phase corev1.PodPhase) {
	w.Helper()
	pod := &corev1.Pod{}
	w.Must(w.Get(w.Ctx, w.key(name), pod))
	pod.Status.Phase = phase
	w.Must(w.Status().Update(w.Ctx, pod))
}

// networkStatus returns an edit that writes the annotation.
func networkStatus(entries ...multus.NetworkStatus) func(*corev1.Pod) {
	text, _ := json.Marshal(append([]multus.NetworkStatus{}, entries...))
	return annotated(string(text))
}

func annotated(text string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{multus.NetworkStatusAnnotation: text} }
}

// Gone deletes a Pod at once.
func (w *World) Gone(name string) {
	w.Helper()
	w.Must(
		w.Delete(w.Ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: name}},
			client.GracePeriodSeconds(0)),
	)
}

// Pool creates an IPPool whose allocations belong to Pods, by key. A name with a slash is used as a reference.
func (w *World) Pool(name, cidr string, pods map[string]string) {
	w.Helper()
	pool := &v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: name}}
	pool.Spec = v1alpha1.IPPoolSpec{Range: cidr, Allocations: map[string]v1alpha1.IPAllocation{}}
	for key, pod := range pods {
		pool.Spec.Allocations[key] = w.allocation(pod)
	}
	w.Must(w.Create(w.Ctx, pool))
}

func (w *World) allocation(pod string) v1alpha1.IPAllocation {
	if pod != "" && !strings.Contains(pod, "/") {
		pod = w.ref(pod)
	}
	return v1alpha1.IPAllocation{ContainerID: "c-" + pod, PodRef: pod, IfName: "net1"}
}

// Change changes a pool as the CNI plugin does.
func (w *World) Change(name string, change func(*v1alpha1.IPPoolSpec)) {
	w.Helper()
	pool := &v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: name}}
	w.Must(controllerutil.RetryOnConflict(w.Ctx, w, pool, func() error {
		change(&pool.Spec)
		return nil
	}))
}

// Reserve creates the reservation of an address for a Pod, or for a reference with a slash.
func (w *World) Reserve(ip, pod string) {
	w.Helper()
	w.Must(w.Create(w.Ctx, &v1alpha1.OverlappingRangeIPReservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: v1alpha1.ReservationName("", netip.MustParseAddr(ip))},
		Spec:       v1alpha1.OverlappingRangeIPReservationSpec(w.allocation(pod)),
	}))
}

// Reservations returns the names of all reservations.
func (w *World) Reservations() (names []string) {
	w.Helper()
	var list v1alpha1.OverlappingRangeIPReservationList
	w.Must(w.List(w.Ctx, &list, client.InNamespace(w.NS)))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// Kept waits until a pool has exactly these allocations, a current condition with that reason, and correct numbers.
func (w *World) Kept(name, reason string, keys ...string) (pool v1alpha1.IPPool) {
	w.Helper()
	w.Eventually(func() string {
		pool = v1alpha1.IPPool{}
		if err := w.Get(w.Ctx, w.key(name), &pool); err != nil {
			return err.Error()
		}
		got := slices.Sorted(maps.Keys(pool.Spec.Allocations))
		c := conditions.Get(pool.Status.Conditions, conditions.Ready)
		if !slices.Equal(got, keys) || c == nil || c.Reason != reason || c.ObservedGeneration != pool.Generation {
			return fmt.Sprintf("pool %s: allocations %q, conditions %+v; want %q, %s", name, got,
				pool.Status.Conditions, keys, reason)
		}
		return ""
	})
	if s := pool.Status; int(s.UsedIPs) != len(keys) || s.FreeIPs != max(0, s.TotalIPs-s.UsedIPs) ||
		len(s.AllocatedIPs) != len(keys) {
		w.Errorf("pool %s: status %+v", name, s)
	}
	return pool
}

// Node creates nodes.
func (w *World) Node(names ...string) {
	w.Helper()
	for _, name := range names {
		w.Must(w.Create(w.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

// NoNode deletes a node.
func (w *World) NoNode(name string) {
	w.Helper()
	w.Must(w.Delete(w.Ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// Network creates or changes a network attachment definition.
func (w *World) Network(name, config string) {
	w.Helper()
	nad := &multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: name}}
	_, err := controllerutil.CreateOrUpdate(w.Ctx, w, nad, func() error {
		nad.Spec.Config = config
		return nil
	})
	w.Must(err)
}

// config returns a CNI configuration of a sliced network.
func config(network, cidr, size string) string {
	return fmt.Sprintf(
		`{"cniVersion":"0.3.1","name":"cni","type":"macvlan","ipam":{"type":"whereabouts","range":%q,"node_slice_size":%q,"network_name":%q}}`, cidr, size, network,
	)
}

// Sliced waits until a NodeSlicePool has the reason and these slices, written "node=range".
func (w *World) Sliced(name, reason string, assigned ...string) (pool v1alpha1.NodeSlicePool) {
	w.Helper()
	w.Eventually(func() string {
		pool = v1alpha1.NodeSlicePool{}
		if err := w.Get(w.Ctx, w.key(name), &pool); err != nil {
			return err.Error()
		}
		var got []string
		for _, a := range pool.Status.Allocations {
			got = append(got, a.NodeName+"="+a.SliceRange)
		}
		c := conditions.Get(pool.Status.Conditions, conditions.Ready)
		if !slices.Equal(got, assigned) || c == nil || c.Reason != reason || c.ObservedGeneration != pool.Generation {
			return fmt.Sprintf("pool %s: slices %q, conditions %+v; want %q, %s", name, got, pool.Status.Conditions,
				assigned, reason)
		}
		return ""
	})
	if s := pool.Status; int(s.AssignedSlices) != len(assigned) || s.FreeSlices != s.TotalSlices-s.AssignedSlices {
		w.Errorf("pool %s: status %+v", name, s)
	}
	return pool
}

// Event waits for an event of that type and reason about an object.
func (w *World) Event(object, eventType, reason string) {
	w.Helper()
	w.Eventually(func() string {
		var list corev1.EventList
		if err := w.List(w.Ctx, &list, client.InNamespace(w.NS)); err != nil {
			return err.Error()
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.InvolvedObject.Name == object && e.Type == eventType && e.Reason == reason {
				return ""
			}
		}
		return fmt.Sprintf("there is no event %s %s about %s", eventType, reason, object)
	})
}

// clear deletes what a scenario has left.
func (w *World) clear() {
	w.Helper()
	for _, obj := range []client.Object{
		&multus.NetworkAttachmentDefinition{}, &v1alpha1.NodeSlicePool{}, &v1alpha1.IPPool{},
		&v1alpha1.OverlappingRangeIPReservation{}, &corev1.Pod{},
	} {
		w.Must(w.DeleteAllOf(w.Ctx, obj, client.InNamespace(w.NS)))
	}
	w.Must(w.DeleteAllOf(w.Ctx, &corev1.Node{}))
	w.Eventually(func() string {
		var pools v1alpha1.IPPoolList
		if err := w.List(w.Ctx, &pools, client.InNamespace(w.NS)); err != nil || len(pools.Items) > 0 {
			return fmt.Sprintf("%d pools are left, %v", len(pools.Items), err)
		}
		return ""
	})
}
