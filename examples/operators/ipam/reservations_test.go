package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// A reservation stays while its Pod needs an address. One without a reference is reported and stays. One whose
// reference cannot be the name of a Pod goes.
func reservations(terminating bool) func(*World) {
	return func(w *World) {
		w.Running("lives")
		w.Pod("waits", corev1.PodPending, nil)
		w.Pod("leaves", corev1.PodRunning, held)
		w.Pod("disrupted", corev1.PodRunning, disrupted)
		w.Pod("finished", corev1.PodSucceeded, nil)
		w.Gone("leaves")
		for i, ref := range []string{"lives", "waits", "leaves", "disrupted", "finished", "missing", "", "a/b/c"} {
			w.Reserve(fmt.Sprintf("10.0.0.%d", i+1), ref)
		}
		want := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.7"}
		if terminating {
			want = slices.Delete(want, 2, 3)
		}
		left := func() string {
			if got := w.Reservations(); !slices.Equal(got, want) {
				return fmt.Sprintf("reservations %q, want %q", got, want)
			}
			return ""
		}
		w.Eventually(left)
		w.Idle()
		for name, reason := range map[string]string{
			"10.0.0.1": controller.ReasonValidated,
			"10.0.0.7": controller.ReasonNoPodRef,
		} {
			var r v1alpha1.OverlappingRangeIPReservation
			w.Must(w.Get(w.Ctx, w.key(name), &r))
			c := conditions.Get(r.Status.Conditions, conditions.Ready)
			if c == nil || c.Reason != reason ||
				(c.Status == metav1.ConditionTrue) != (reason == controller.ReasonValidated) {
				w.Errorf("%s: %+v", name, r.Status.Conditions)
			}
		}
		w.Event("10.0.0.6", "Normal", "OrphanedReservationDeleted")
		w.Event("10.0.0.7", "Warning", controller.ReasonNoPodRef)
		w.letGo("leaves")
		w.Gone("lives")
		want = []string{"10.0.0.2", "10.0.0.7"}
		w.Eventually(left)
	}
}
