package endpointslice_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, its event handlers, and
// k8s.io/endpointslice v0.37.2 util/controller_utils.go
func TestPodEvents(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.service("web")
		c.service("other")
		c.want("web", "") // the placeholder has neither endpoints nor ports
		c.wantWrites("create 201, create 201")
		c.pod("a", "web", "10.0.0.1")
		c.pod("b", "web", "10.0.0.2")
		c.want("web", "10.0.0.1 10.0.0.2 :8080")
		c.log.Reset() // one or two writes for each pod: it is created, and becomes ready

		c.ready("a", false)
		c.want("web", "-10.0.0.1 10.0.0.2 :8080")
		c.wantWrites("update 200")
		c.patchPod("a", `{"metadata":{"annotations":{"x":"y"}}}`)
		c.wantWrites("")
		c.patchPod("a", `{"metadata":{"labels":{"app":"other"}}}`) // from one Service to the other
		c.want("web", "10.0.0.2 :8080")
		c.want("other", "-10.0.0.1 :8080")
		c.wantWrites("update 200, update 200")

		// A pod that ends leaves at once, though its readiness did not change.
		c.status("a", `{"phase":"Failed"}`)
		c.want("other", "")
		c.wantWrites("update 200")

		c.must(c.client.CoreV1().Pods("default").Delete(c.ctx, "b", metav1.DeleteOptions{}))
		c.want("web", "-10.0.0.2S :8080") // being deleted, and still serving
		if e := c.only().Endpoints[0]; !*e.Conditions.Terminating || *e.Zone != "a" || *e.NodeName != "n" ||
			e.TargetRef.Name != "b" {
			t.Errorf("endpoint %s", e.String())
		}
		c.wantWrites("update 200")
		c.status("b", `{"message":"still there"}`)
		c.wantWrites("")
		c.must(c.client.CoreV1().Pods("default").Delete(c.ctx, "b", *metav1.NewDeleteOptions(0)))
		c.want("web", "")
		c.wantWrites("update 200")
		c.wantWrites("", 10*time.Minute)
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, syncService
func TestServiceEvents(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web", func(s *corev1.Service) { s.Labels = map[string]string{"x": "1"} })
		c.want("web", "10.0.0.1 :8080")
		c.wantWrites("create 201")
		if s := c.only(); s.Labels["x"] != "1" || s.Labels[discoveryv1.LabelManagedBy] != endpointslice.ManagedBy ||
			s.GenerateName != "web-" {
			t.Errorf("metadata %+v", s.ObjectMeta)
		}
		c.patchService(`{"metadata":{"annotations":{"not":"ours"}}}`)
		c.wantWrites("", time.Minute)
		c.patchService(`{"metadata":{"labels":{"x":"2"}}}`)
		c.wantWrites("update 200", time.Minute)
		if s := c.only(); s.Labels["x"] != "2" {
			t.Errorf("labels %v", s.Labels)
		}
		c.patchService(`{"spec":{"publishNotReadyAddresses":true}}`)
		c.ready("a", false)
		c.want("web", "10.0.0.1 :8080")
		c.patchService(`{"spec":{"ports":[{"port":80,"targetPort":9090}]}}`)
		c.want("web", "10.0.0.1 :9090")
		c.patchService(`{"spec":{"selector":null}}`) // from now on somebody else publishes the addresses
		synctest.Wait()
		c.log.Reset()
		c.status("a", `{"phase":"Failed"}`)
		c.want("web", "10.0.0.1 :9090")
		c.deleteService()
		c.wantWrites("", time.Minute) // the garbage collector deletes the slices
	})
}

// Changes that others make to slices are undone after a second; slices of other managers are left alone.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, onEndpointSliceAdd,
// onEndpointSliceUpdate and onEndpointSliceDelete
func TestSliceEvents(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		own := c.only()
		other := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{
				discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "somebody", "x": "y",
			}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		_, err := c.client.DiscoveryV1().EndpointSlices("default").Create(c.ctx, other,
			metav1.CreateOptions{})
		c.must(err)
		c.wantWrites("create 201", time.Minute)

		c.patchSlice(own.Name, `{"endpoints":[{"addresses":["9.9.9.9"],"conditions":{"ready":true,"serving":true}}]}`)
		c.want("web", " | 9.9.9.9 :8080")
		c.wantWrites("", 999*time.Millisecond)
		c.wantWrites("update 200", time.Millisecond)
		c.want("web", " | 10.0.0.1 :8080")
		c.patchSlice(own.Name, `{"metadata":{"labels":{"foreign":"label"}}}`)
		c.wantWrites("update 200", time.Minute)
		c.patchSlice(own.Name, `{"metadata":{"annotations":{"not":"ours"}}}`)
		c.wantWrites("", time.Minute)

		c.deleteSlice(own.Name)
		c.wantWrites("create 201", time.Minute)
		c.want("web", " | 10.0.0.1 :8080")
		// A slice that is taken away from the controller stays as it is, and is replaced.
		for _, s := range c.slices("web") {
			if s.Name != "other" {
				c.patchSlice(s.Name, `{"metadata":{"labels":{"endpointslice.kubernetes.io/managed-by":"somebody"}}}`)
			}
		}
		c.wantWrites("create 201", time.Minute)
		c.want("web", " | 10.0.0.1 :8080 | 10.0.0.1 :8080")
		c.deleteSlice("other")
		c.wantWrites("", time.Minute)
	})
}

// A slice that is relabelled to another Service is replaced for the first, and removed for the second, since it has
// another owner.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, onEndpointSliceUpdate
func TestSliceGivenToAnotherService(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		c.service("other")
		c.wantWrites("create 201, create 201")
		c.patchSlice(c.only().Name, `{"metadata":{"labels":{"kubernetes.io/service-name":"other"}}}`)
		time.Sleep(time.Minute)
		c.want("web", "10.0.0.1 :8080")
		c.want("other", "")
		creates := c.log.Entries(func(e audit.Entry) bool { return mine(e) && e.Verb == "create" })
		if all := c.log.Entries(mine); len(all) != 2 || len(creates) != 1 {
			t.Errorf("writes %v", all)
		}
	})
}

// A slice that a finalizer holds back is replaced at once, and left alone.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go,
// dropEndpointSlicesPendingDeletion
func TestSliceHeldBack(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		name := c.only().Name
		c.patchSlice(name, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		c.deleteSlice(name)
		c.wantWrites("create 201, create 201", time.Minute)
		c.want("web", "10.0.0.1 :8080 | 10.0.0.1 :8080")
		c.ready("a", false)
		c.want("web", "-10.0.0.1 :8080 | 10.0.0.1 :8080")
		c.patchSlice(name, `{"metadata":{"finalizers":null}}`)
		c.want("web", "-10.0.0.1 :8080")
		c.wantWrites("update 200", time.Minute)
	})
}

// A restart writes nothing if nothing has changed. The new controller then notices changes of slices.
func TestRestart(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		c.service("headless", func(s *corev1.Service) { s.Spec.ClusterIP = "None" })
		c.service("nobody")
		c.wantWrites("create 201, create 201, create 201")
		c.stop()
		c.start()
		c.wantWrites("", 10*time.Minute)
		c.deleteSlice(c.only().Name)
		c.wantWrites("create 201", time.Minute)
	})
}

// Changes of pods within the batch period cause one write; those of the Service do not wait.
func TestBatchPeriod(t *testing.T) {
	inCluster(t, endpointslice.Options{BatchPeriod: 5 * time.Second}, func(c *cluster) {
		c.service("web")
		c.wantWrites("create 201")
		for i := range 5 {
			c.pod(fmt.Sprint("p", i), "web", fmt.Sprintf("10.0.0.%d", i+1))
		}
		c.wantWrites("", 5*time.Second-1)
		c.wantWrites("update 200", 1)
		c.want("web", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 :8080")
		c.deleteSlice(c.only().Name)
		c.wantWrites("", 5*time.Second-1)
		c.wantWrites("create 201", 1)
	})
}

func TestMaxEndpointsPerSlice(t *testing.T) {
	inCluster(t, endpointslice.Options{MaxEndpointsPerSlice: 2}, func(c *cluster) {
		for i := range 5 {
			c.pod(fmt.Sprint("p", i), "web", fmt.Sprintf("10.0.0.%d", i+1))
		}
		c.service("web")
		c.want("web", "10.0.0.1 10.0.0.2 :8080 | 10.0.0.3 10.0.0.4 :8080 | 10.0.0.5 :8080")
		c.wantWrites("create 201, create 201, create 201")
	})
}

// Deleting a Service and creating it again at once causes no failed write and no event. The garbage collector or the
// controller removes the slices that are left of the earlier ones.
func TestServiceRecreated(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		for range 20 {
			c.service("web")
			c.deleteService()
		}
		c.service("web")
		time.Sleep(time.Minute)
		c.want("web", "10.0.0.1 :8080")
		for _, e := range c.log.Entries(mine) {
			if e.Code >= 300 && e.Verb != "delete" { // what was written for a Service is forgotten with it
				t.Errorf("%v", e)
			}
		}
		if found := c.events(); len(found) != 0 {
			t.Errorf("events %v", found)
		}
	})
}

// A pod whose node is not known yet is left out, and published as soon as the node is there. A node that moves to
// another zone takes its endpoints along.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByAddressType; there it takes a retry, or a change of
// something else
func TestNodeEvents(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.pod("b", "web", "10.0.0.2", "late")
		c.service("web")
		c.want("web", "10.0.0.1 :8080")
		c.wantWrites("create 201", time.Hour) // all retries
		found := c.events()
		if want := "FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service default/web: skipping " +
			"Pod " +
			"b for Service default/web: Node late Not Found"; len(found) != 1 || found[0] != want {
			t.Errorf("events %q", found)
		}
		c.node("late", "b")
		c.wantWrites("update 200", time.Second)
		c.want("web", "10.0.0.1 10.0.0.2 :8080")
		_, err := c.client.CoreV1().Nodes().Patch(c.ctx, "late", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"c"}}}`), metav1.PatchOptions{})
		c.must(err)
		c.wantWrites("update 200", time.Second)
		for _, e := range c.only().Endpoints {
			if e.TargetRef.Name == "b" && *e.Zone != "c" {
				t.Errorf("zone %q", *e.Zone)
			}
		}
	})
}

// Hints by the zones' shares appear and disappear as the nodes change.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go,
// checkNodeTopologyDistribution
func TestTopologyFollowsNodes(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.node("m", "b")
		c.pod("a", "web", "10.0.0.1")
		c.pod("b", "web", "10.0.0.2", "m")
		c.service("web",
			func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"} })
		hints := func() (n int) {
			for _, e := range c.only().Endpoints {
				if e.Hints != nil {
					n++
				}
			}
			return n
		}
		if n := hints(); n != 2 {
			t.Errorf("%d hints", n)
		}
		if found := c.events(); len(found) != 1 ||
			found[0] != "TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4" {
			t.Errorf("events %q", found)
		}
		c.wantWrites("create 201", time.Minute)
		c.must(c.client.CoreV1().Nodes().Delete(c.ctx, "m", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		if n := hints(); n != 0 {
			t.Errorf("%d hints with one zone", n)
		}
	})
}

// Source: k8s.io/endpointslice v0.37.2 util/trigger_time_tracker.go
func TestTriggerTimeAnnotation(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.service("web")
		annotation := func() string { return c.only().Annotations[corev1.EndpointsLastChangeTriggerTime] }
		if got := annotation(); got != "2000-01-01T00:00:00Z" {
			t.Errorf("created: %q", got)
		}
		time.Sleep(time.Minute)
		c.pod("a", "web", "10.0.0.1")
		if got := annotation(); got != "2000-01-01T00:01:00Z" {
			t.Errorf("pod ready: %q", got)
		}
		c.status("a", `{"podIPs":[{"$patch":"replace"},{"ip":"10.0.0.2"}],"podIP":"10.0.0.2"}`)
		if got := annotation(); got != "" { // a change whose time is not known
			t.Errorf("address changed: %q", got)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	m, err := manager.New(localapi.NewTest(t).RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 1001} {
		o := endpointslice.Options{MaxEndpointsPerSlice: n}
		if _, err := endpointslice.New(m.GetClient(), m.Informers(), nil, o); err == nil {
			t.Errorf("%d endpoints per slice are no error", n)
		}
	}
}
