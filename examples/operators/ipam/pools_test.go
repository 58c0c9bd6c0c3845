package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// The allocation of an existing Pod stays; that of a missing Pod goes, with its reservation. After that nothing is
// written as long as nothing happens. The deletion of a Pod is noticed by its event, not by polling.
func poolOrphans(w *World) {
	w.Running("lives", "leaves")
	w.Reserve("10.0.0.1", "lives")
	w.Pool("p", "10.0.0.0/24", map[string]string{"1": "lives", "2": "missing", "3": "leaves", "4": ""})
	w.Reserve("10.0.0.3", "leaves")
	pool := w.Kept("p", controller.ReasonOrphansCleaned, "1", "3")
	if !controllerutil.ContainsFinalizer(&pool, controller.Finalizer) {
		w.Error("there is no finalizer")
	}
	w.Event("p", "Normal", "OrphanedAllocationsCleaned")
	pool = w.Kept("p", controller.ReasonReconciled, "1", "3")
	s := pool.Status
	if s.FirstIP != "10.0.0.1" || s.LastIP != "10.0.0.254" || s.TotalIPs != 254 || s.OrphanedIPs != 0 ||
		s.OverlappingReservations != 2 ||
		s.AllocatedIPs[1] != (v1alpha1.AllocatedIP{IP: "10.0.0.3", PodRef: w.ref("leaves"), IfName: "net1"}) {
		w.Errorf("status %+v", s)
	}
	w.Idle()
	w.Gone("leaves")
	w.Kept("p", controller.ReasonOrphansCleaned, "1")
	if left := w.Reservations(); !slices.Equal(left, []string{"10.0.0.1"}) {
		w.Errorf("reservations %v", left)
	}
	w.Gone("lives")
	w.Kept("p", controller.ReasonReconciled)
	w.Idle()
}

// A pending Pod keeps its address, and the pool waits for it. An event tells it when the Pod runs.
func poolPending(w *World) {
	w.Pod("p1", corev1.PodPending, nil)
	w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1"})
	pool := w.Kept("p", controller.ReasonReconciling, "1")
	list := pool.Status.Conditions
	if pool.Status.PendingPods != 1 || !conditions.Is(list, conditions.Reconciling, "True") ||
		!conditions.Is(list, conditions.Ready, "Unknown") {
		w.Errorf("status %+v", pool.Status)
	}
	w.Idle()
	w.Phase("p1", corev1.PodRunning)
	if pool = w.Kept("p", controller.ReasonReconciled, "1"); pool.Status.PendingPods != 0 {
		w.Errorf("status %+v", pool.Status)
	}
}

// disrupted marks a Pod as the taint manager does.
func disrupted(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"},
	}
}

func poolDisrupted(cleaned bool) func(*World) {
	return func(w *World) {
		w.Pod("disrupted", corev1.PodRunning, disrupted)
		w.Pod("preempted", corev1.PodRunning, func(pod *corev1.Pod) {
			disrupted(pod)
			pod.Status.Conditions[0].Reason = "PreemptionByScheduler"
		})
		w.Pool("p", "10.0.0.0/24", map[string]string{"1": "disrupted", "2": "preempted"})
		if cleaned {
			w.Kept("p", controller.ReasonReconciled, "2")
		} else {
			w.Kept("p", controller.ReasonReconciled, "1", "2")
		}
		w.Idle()
	}
}

// held keeps a deleted Pod from going.
func held(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/held"} }

// letGo ends a Pod that was held.
func (w *World) letGo(name string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: name}}
	w.Must(controllerutil.RetryOnConflict(w.Ctx, w, pod, func() error {
		pod.Finalizers = nil
		return nil
	}))
}

func poolTerminating(cleaned bool) func(*World) {
	return func(w *World) {
		w.Pod("p1", corev1.PodRunning, held)
		w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1"})
		w.Kept("p", controller.ReasonReconciled, "1")
		w.Gone("p1")
		if cleaned {
			w.Kept("p", controller.ReasonReconciled)
			w.letGo("p1")
			return
		}
		w.Idle()
		w.Kept("p", controller.ReasonReconciled, "1")
		w.letGo("p1")
		w.Kept("p", controller.ReasonReconciled)
	}
}

// The network status lists the addresses of a running Pod, by interface. Addresses for which it has no information are
// in use.
func poolNetworkStatus(w *World) {
	entry := func(interfaceName string, isDefault bool, ips ...string) multus.NetworkStatus {
		return multus.NetworkStatus{Name: "n", Interface: interfaceName, IPs: ips, Default: isDefault}
	}
	pods := map[string]string{}
	for i, c := range []struct {
		name string
		edit func(*corev1.Pod)
	}{
		{"has", networkStatus(entry("eth0", true, "192.168.0.1"), entry("net1", false, "fd00::5", "10.0.0.1"))},
		{"has-another", networkStatus(entry("net1", false, "10.0.0.99"))},
		{"by-default", networkStatus(entry("net1", true, "10.0.0.3"))},
		{"elsewhere", networkStatus(entry("net2", false, "10.0.0.4"))},
		{"nowhere-said", networkStatus(entry("", false, "10.0.0.5"))},
		{"none", networkStatus()},
		{"absent", nil},
		{"empty", annotated("")},
		{"malformed", annotated(`[{"ips":`)},
	} {
		w.Pod(c.name, corev1.PodRunning, c.edit)
		pods[fmt.Sprint(i+1)] = c.name
	}
	w.Pool("p", "10.0.0.0/24", pods)
	pool := w.Kept("p", controller.ReasonReconciled, "1", "5", "7", "8", "9")
	c := conditions.Get(pool.Status.Conditions, controller.NetworkStatusUnreadable)
	if c == nil || !strings.HasSuffix(c.Message, ": "+w.ref("malformed")) {
		w.Errorf("conditions %+v", pool.Status.Conditions)
	}
	w.Event("p", "Warning", controller.NetworkStatusUnreadable)
	w.Idle()
	w.Gone("malformed")
	if pool = w.Kept("p", controller.ReasonReconciled, "1", "5", "7", "8"); conditions.Get(pool.Status.Conditions,
		controller.NetworkStatusUnreadable) != nil {
		w.Errorf("conditions %+v", pool.Status.Conditions)
	}
}

func poolNetworkStatusOff(w *World) {
	w.Pod("p1", corev1.PodRunning, networkStatus())
	w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1"})
	w.Idle()
	w.Kept("p", controller.ReasonReconciled, "1")
}

// Finished Pods and those on lost nodes need no address, although they exist.
func poolFinishedPods(w *World) {
	w.Running("runs", "ends")
	w.Pod("succeeded", corev1.PodSucceeded, nil)
	w.Pod("failed", corev1.PodFailed, nil)
	w.Pod("unknown", corev1.PodUnknown, nil)
	w.Pod("lost", corev1.PodUnknown, func(pod *corev1.Pod) { pod.Status.Reason = "NodeLost" })
	w.Pool("p", "fd00::/120",
		map[string]string{"1": "runs", "2": "succeeded", "3": "failed", "4": "unknown", "5": "lost", "6": "ends"})
	w.Kept("p", controller.ReasonReconciled, "1", "4", "6")
	w.Phase("ends", corev1.PodSucceeded)
	w.Kept("p", controller.ReasonReconciled, "1", "4")
}

// A deleted pool goes after its reservations; those of other pools stay.
func poolDeleted(w *World) {
	w.Running("p1", "p2", "p3")
	w.Reserve("10.0.0.1", "p1")
	w.Reserve("10.0.0.2", "p2")
	w.Reserve("10.0.0.3", "p3")
	w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1", "2": "p2"})
	w.Kept("p", controller.ReasonReconciled, "1", "2")
	pool := &v1alpha1.IPPool{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: "p"}}
	w.Must(w.Delete(w.Ctx, pool))
	w.Eventually(func() string {
		if err := w.Get(w.Ctx, w.key("p"), pool); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the pool is still there: %v", err)
		}
		return ""
	})
	if left := w.Reservations(); !slices.Equal(left, []string{"10.0.0.3"}) {
		w.Errorf("reservations %v", left)
	}
}

// At the moment an orphan is released, its address is allocated to a live Pod. That allocation stays, and so do others
// that are added at the same time.
func poolReallocated(w *World) {
	w.Running("p1", "p2")
	w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1"})
	w.Kept("p", controller.ReasonReconciled, "1")
	w.settle()
	w.Before(http.MethodPatch, "/ippools/p", func() {
		w.Change("p", func(spec *v1alpha1.IPPoolSpec) {
			spec.Allocations["5"], spec.Allocations["6"] = w.allocation("p1"), w.allocation("p2")
		})
	})
	w.Change("p", func(spec *v1alpha1.IPPoolSpec) { spec.Allocations["5"] = w.allocation("missing") })
	pool := w.Kept("p", controller.ReasonReconciled, "1", "5", "6")
	if got := pool.Spec.Allocations["5"].PodRef; got != w.ref("p1") {
		w.Errorf("allocation 5 is that of %s", got)
	}
}

// The reservation of an orphan's address is deleted only if it belongs to the orphan: to that Pod and that interface.
func poolReservationOfAnother(w *World) {
	w.Running("lives")
	w.Reserve("10.0.0.1", "lives")
	w.Pool("p", "10.0.0.0/24", map[string]string{"1": "missing"})
	w.Kept("p", controller.ReasonReconciled)
	w.Idle()
	if left := w.Reservations(); !slices.Equal(left, []string{"10.0.0.1"}) {
		w.Errorf("reservations %v", left)
	}
}

// When many Pods go, there is one list of Pods and a few writes.
func poolManyOrphans(w *World) {
	pods := map[string]string{}
	for i := range 100 {
		pods[fmt.Sprint(i+1)] = fmt.Sprint("missing-", i)
	}
	w.Running("lives")
	pods["200"] = "lives"
	w.Pool("p", "10.0.0.0/24", pods)
	pool := w.Kept("p", controller.ReasonOrphansCleaned, "200")
	if c := conditions.Get(pool.Status.Conditions,
		conditions.Ready); c.Message != "cleaned 100 orphaned allocation(s)" {
		w.Errorf("condition %+v", c)
	}
	if writes := w.Take(); len(writes) > 6 {
		w.Errorf("%d writes: %q", len(writes), writes)
	}
}

// Malformed input is reported, and loses nothing.
func poolBadInput(w *World) {
	w.Running("p1")
	w.Pool("p", "10.0.0.0/33", map[string]string{"1": "p1", "2": "missing"})
	w.Eventually(func() string {
		var pool v1alpha1.IPPool
		err := w.Get(w.Ctx, w.key("p"), &pool)
		c := conditions.Get(pool.Status.Conditions, conditions.Stalled)
		if err != nil || c == nil || c.Status != "True" || c.Reason != controller.ReasonInvalidRange ||
			len(pool.Spec.Allocations) != 2 {
			return fmt.Sprintf("%v, %+v", err, pool)
		}
		return ""
	})
	w.Event("p", "Warning", controller.ReasonInvalidRange)
	w.Idle()
	w.Change("p", func(spec *v1alpha1.IPPoolSpec) {
		spec.Range = "10.0.0.0/30"
		spec.Allocations["seven"], spec.Allocations["99"], spec.Allocations["-1"] = w.allocation("p1"),
			w.allocation("p1"), w.allocation("p1")
		for i, ref := range []string{"no-slash", "/", "a/b/c", "a/..", "../b", "a/%", "/x"} {
			spec.Allocations[fmt.Sprint("bad", i)] = v1alpha1.IPAllocation{ContainerID: "c", PodRef: ref}
		}
	})
	// They belong to a live Pod, whatever the key means.
	pool := w.Kept("p", controller.ReasonReconciled, "-1", "1", "99", "seven")
	if !conditions.Is(pool.Status.Conditions, conditions.Stalled, "False") || pool.Status.TotalIPs != 2 {
		w.Errorf("status %+v", pool.Status)
	}
	w.Change("p", func(spec *v1alpha1.IPPoolSpec) { spec.Range = "nonsense" })
	w.Must(w.Delete(w.Ctx, &pool)) // it can be deleted, whatever its range
	w.Eventually(func() string {
		if err := w.Get(w.Ctx, w.key("p"), &pool); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the pool is still there: %v", err)
		}
		return ""
	})
}

// Pools of one network whose ranges overlap report that as long as they do. Nothing else changes.
func poolOverlap(w *World) {
	w.Running("p1")
	w.Pool("10.0.0.0-24", "10.0.0.0/24", map[string]string{"1": "p1"})
	w.Pool("net-10.0.0.0-24", "10.0.0.0/24", nil) // of another network
	w.Pool("10.0.0.128-25", "10.0.0.128/25", nil)
	w.Pool("10.0.1.0-24", "10.0.1.0/24", nil)
	overlap := func(name, message string) {
		w.Helper()
		w.Eventually(func() string {
			var pool v1alpha1.IPPool
			if err := w.Get(w.Ctx, w.key(name), &pool); err != nil {
				return err.Error()
			}
			got, list := "", pool.Status.Conditions
			if c := conditions.Get(list, controller.RangeOverlap); c != nil {
				got = c.Message
			}
			if got != message || !conditions.Is(list, conditions.Ready, "True") {
				return fmt.Sprintf("%s: %+v, want %q", name, list, message)
			}
			return ""
		})
	}
	overlap("10.0.0.0-24", "the range overlaps with: 10.0.0.128-25 (10.0.0.128/25)")
	overlap("10.0.0.128-25", "the range overlaps with: 10.0.0.0-24 (10.0.0.0/24)")
	overlap("net-10.0.0.0-24", "")
	overlap("10.0.1.0-24", "")
	w.Event("10.0.0.0-24", "Warning", controller.RangeOverlap)
	w.Idle()
	w.Change("10.0.0.128-25", func(spec *v1alpha1.IPPoolSpec) { spec.Range = "10.0.2.128/25" })
	overlap("10.0.0.0-24", "")
	overlap("10.0.0.128-25", "")
	w.Kept("10.0.0.0-24", controller.ReasonReconciled, "1")
}
