package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// sky is a server on which things go wrong, with the operator's metrics.
type sky struct {
	*localapi.Test
	metrics *metrics.Registry
}

// under plays on such a server; the gate may be nil.
func under(t *testing.T, g gate.Gate, test func(w *World, s *sky)) {
	synctest.Test(t, func(t *testing.T) {
		s := &sky{localapi.NewTestWith(t, localapi.Options{Gate: g, NoKubernetesService: true}), metrics.New()}
		operator.Install(t, s.RESTConfig())
		own, err := controller.NewMetrics(s.metrics)
		if err != nil {
			t.Fatal(err)
		}
		Scenario{
			Name:    "weather",
			Options: func(o *controller.Options) { o.Metrics, o.MinInterval = own, 0 },
			Does:    func(w *World) { test(w, s) },
		}.Play(t, optest.Cluster{Admin: s.RESTConfig(), Operator: s.RESTConfig()})
	})
}

// metric is the value of one line of /metrics, "" if there is none.
func (s *sky) metric(line string) string {
	r := httptest.NewRecorder()
	s.metrics.ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	for l := range strings.Lines(r.Body.String()) {
		if value, found := strings.CutPrefix(l, line+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *sky) count(match func(audit.Entry) bool) int { return len(s.Audit().Entries(match)) }

// The operator hears of Pods later than of pools. A Pod that it does not know, or knows as one that has ended, keeps
// its address, and its reservation, for the server knows better.
func TestPodsComeLate(t *testing.T) {
	var late atomic.Bool
	lag := gate.Funcs{OnFrame: func(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if r.Resource == "pods" && late.Load() {
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
			}
		}
		return gate.Verdict{}
	}}
	under(t, lag, func(w *World, s *sky) {
		w.Running("before")
		w.Pool("p", "10.0.0.0/24", map[string]string{"1": "before"})
		w.Kept("p", controller.ReasonReconciled, "1")
		w.Pod("again", corev1.PodSucceeded, nil)
		w.Idle()
		late.Store(true)
		w.Gone("again")
		w.Running("again", "new")
		w.Reserve("10.0.0.2", "again")
		w.Reserve("10.0.0.3", "new")
		w.Change("p", func(spec *v1alpha1.IPPoolSpec) {
			for key, pod := range map[string]string{"2": "again", "3": "new"} {
				spec.Allocations[key] = v1alpha1.IPAllocation{
					ContainerID: "c", PodRef: w.NS + "/" + pod,
					IfName: "net1",
				}
			}
		})
		w.Kept("p", controller.ReasonReconciled, "1", "2", "3")
		time.Sleep(time.Minute) // until all is heard of
		w.Idle()
		w.Kept("p", controller.ReasonReconciled, "1", "2", "3")
		if left := w.Reservations(); len(left) != 2 {
			w.Errorf("reservations %v", left)
		}
		if n := s.count(
			func(e audit.Entry) bool { return e.Verb == "delete" && e.Resource == "overlappingrangeipreservations" },
		); n > 0 {
			w.Errorf("%d reservations were deleted", n)
		}
	})
}

// A reservation that cannot be deleted keeps the address from being given away; it is said, and tried again.
func TestReservationCannotBeDeleted(t *testing.T) {
	under(t, nil, func(w *World, s *sky) {
		refused := apierrors.NewForbidden(
			v1alpha1.GroupVersion.WithResource("overlappingrangeipreservations").GroupResource(), "10.0.0.1",
			errors.New("by a webhook"),
		)
		allow := s.Intercept(localapi.Rule{Verb: "delete", Resource: "overlappingrangeipreservations", Err: refused})
		w.Running("p1")
		w.Reserve("10.0.0.1", "p1")
		w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1"})
		w.Kept("p", controller.ReasonReconciled, "1")
		w.Gone("p1")
		pool := w.Kept("p", controller.ReasonCleanupFailed, "1")
		if pool.Status.OrphanedIPs != 1 ||
			!conditions.Is(pool.Status.Conditions, conditions.Reconciling, metav1.ConditionTrue) {
			w.Errorf("status %+v", pool.Status)
		}
		w.Event("p", "Warning", "OverlappingReservationCleanupFailed")
		time.Sleep(time.Hour)
		if got := s.metric(`whereabouts_ippool_orphans_cleaned_total{namespace="weather",pool="p"}`); got != "" {
			w.Errorf("%s orphans are counted as cleaned", got)
		}
		allow()
		time.Sleep(20 * time.Minute) // until it is tried again
		if pool = w.Kept("p", controller.ReasonReconciled); pool.Status.OrphanedIPs != 0 || len(w.Reservations()) != 0 {
			w.Errorf("status %+v, reservations %v", pool.Status, w.Reservations())
		}
	})
}

// What could not be written is written by the next pass, and counted once.
func TestPoolCannotBeWritten(t *testing.T) {
	under(t, nil, func(w *World, s *sky) {
		w.Running("p1")
		w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1"})
		w.Kept("p", controller.ReasonReconciled, "1")
		busy := apierrors.NewTooManyRequests("busy", 1)
		s.Intercept(localapi.Rule{Verb: "patch", Resource: "ippools", Nth: 1, Err: busy})
		s.Intercept(
			localapi.Rule{
				Verb: "patch", Resource: "ippools", Subresource: "status", Nth: 1,
				Err: apierrors.NewInternalError(errors.New("disk")),
			},
		)
		w.Gone("p1")
		// The outcome of a write that an error of the server answered is not known for a minute.
		time.Sleep(5 * time.Minute)
		w.Kept("p", controller.ReasonReconciled)
		w.Idle()
		if got := s.metric(`whereabouts_ippool_orphans_cleaned_total{namespace="weather",pool="p"}`); got != "1" {
			w.Errorf("%q orphans are counted as cleaned", got)
		}
		var list corev1.EventList
		if err := w.List(w.Context(), &list, client.InNamespace(w.NS)); err != nil || len(list.Items) != 1 ||
			list.Items[0].Count != 1 {
			w.Errorf("events %+v, %v", list.Items, err)
		}
	})
}

// Gauges tell what there is, and are gone with it.
func TestMetrics(t *testing.T) {
	under(t, nil, func(w *World, s *sky) {
		pool, sliced := `{namespace="weather",pool="p"}`, `{namespace="weather",pool="net"}`
		expect := func(want map[string]string) {
			w.Helper()
			time.Sleep(time.Minute)
			for line, value := range want {
				if got := s.metric(line); got != value {
					w.Errorf("%s: %q, want %q", line, got, value)
				}
			}
		}
		w.Running("p1", "p2")
		w.Reserve("10.9.9.9", "missing")
		w.Pool("p", "10.0.0.0/24", map[string]string{"1": "p1", "2": "p2", "3": "missing"})
		w.Node("a")
		w.Network("nad", `{"name":"net","ipam":{"type":"whereabouts","range":"10.1.0.0/24","node_slice_size":"26"}}`)
		expect(map[string]string{
			"whereabouts_ippool_allocations" + pool:                   "2",
			"whereabouts_ippool_orphans_cleaned_total" + pool:         "1",
			"whereabouts_overlappingrange_reservations_cleaned_total": "1",
			"whereabouts_nodeslicepool_assigned_nodes" + sliced:       "1",
			"whereabouts_nodeslicepool_slices_total" + sliced:         "4",
		})
		meta := metav1.ObjectMeta{Namespace: w.NS, Name: "p"}
		for _, obj := range []client.Object{
			&v1alpha1.IPPool{ObjectMeta: meta},
			&multus.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: "nad"}},
		} {
			if err := w.Delete(w.Context(), obj); err != nil {
				w.Fatal(err)
			}
		}
		// The operator must know that the network is gone, or it makes the pool anew. Then the garbage collector comes:
		time.Sleep(time.Second)
		if err := w.Delete(w.Context(),
			&v1alpha1.NodeSlicePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: "net"}}); err != nil {
			w.Fatal(err)
		}
		expect(map[string]string{
			"whereabouts_ippool_allocations" + pool: "", "whereabouts_ippool_orphans_cleaned_total" + pool: "",
			"whereabouts_nodeslicepool_assigned_nodes" + sliced: "", "whereabouts_nodeslicepool_slices_total" +
				sliced: "",
		})
	})
}

// A pool of 600, most of whose Pods are gone, is seen to with one list of Pods and a handful of writes; and a storm
// of Pods that end is a few passes, not one for each.
func TestBigPool(t *testing.T) {
	under(t, nil, func(w *World, s *sky) {
		const size, alive = 600, 60
		pods := map[string]string{}
		for i := range size {
			pods[fmt.Sprint(i+1)] = fmt.Sprint("pod-", i)
			if i < alive {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: w.NS, Name: fmt.Sprint("pod-", i)},
					Status:     corev1.PodStatus{Phase: corev1.PodRunning},
				}
				pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "c:1"}}
				if err := s.Seed(w.Context(), pod); err != nil {
					w.Fatal(err)
				}
			}
		}
		begin := len(s.Requests())
		w.Pool("p", "10.0.0.0/16", pods)
		w.Eventually(func() string {
			var pool v1alpha1.IPPool
			if err := w.Get(w.Context(), client.ObjectKey{Namespace: w.NS, Name: "p"}, &pool); err != nil ||
				pool.Status.UsedIPs != alive {
				return fmt.Sprintf("%d used, %v", pool.Status.UsedIPs, err)
			}
			return ""
		})
		asked := 0
		for _, e := range s.Requests()[begin:] {
			if e.Resource == "pods" && (e.Verb == "get" || e.Verb == "list") {
				asked++
			}
		}
		if asked > 2 {
			w.Errorf("the server was asked for pods %d times", asked)
		}
		w.Idle()
		if err := w.DeleteAllOf(w.Context(), &corev1.Pod{}, client.InNamespace(w.NS),
			client.GracePeriodSeconds(0)); err != nil {
			w.Fatal(err)
		}
		w.Kept("p", controller.ReasonReconciled)
		if n := len(w.Take()); n > 40 {
			w.Errorf("%d writes for %d pods that are gone", n, alive)
		}
	})
}
