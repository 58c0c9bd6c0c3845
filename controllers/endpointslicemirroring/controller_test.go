package endpointslicemirroring_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

const (
	skip  = `{"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}}}`
	allow = `{"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":null}}}`
	lock  = `{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{}"}}}`
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go,
// onEndpointsAdd, onEndpointsUpdate and onEndpointsDelete
func TestEndpointsEvents(t *testing.T) {
	inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
		c.service()
		c.endpoints("10.0.0.1")
		c.want("10.0.0.1 :8080")
		c.wantRequests("create 201")
		c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}],"ports":[{"port":8080}]}]}`)
		c.want("10.0.0.1 10.0.0.2 :8080")
		c.wantRequests("update 200")
		c.patchEndpoints(`{"metadata":{"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"x"}}}`)
		c.wantRequests("")
		c.patchEndpoints(`{"metadata":{"annotations":{"a":"b"},"labels":{"c":"d"}}}`)
		c.wantRequests("update 200")
		if s := c.slices()[0]; s.Annotations["a"] != "b" || s.Labels["c"] != "d" {
			t.Errorf("metadata %+v", s.ObjectMeta)
		}
		c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"fd00::1"}],"ports":[{"port":9090}]}]}`)
		c.want("fd00::1 :9090")
		c.wantRequests("create 201, delete 200") // the family of a slice cannot be changed
		c.patchEndpoints(skip)
		c.want("")
		c.wantRequests("get 200, get 200, delete 200") // of the Endpoints and the Service; see confirm
		c.patchEndpoints(`{"subsets":[]}`)
		c.wantRequests("")
		c.patchEndpoints(allow)
		c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"10.0.0.3"}]}]}`)
		c.want("10.0.0.3")
		c.wantRequests("create 201")
		c.patchEndpoints(lock)
		c.want("")
		c.wantRequests("get 200, get 200, delete 200")
		c.deleteEndpoints()
		c.wantRequests("")
		c.endpoints("10.0.0.4")
		c.want("10.0.0.4 :8080")
		c.wantRequests("create 201")
		c.deleteEndpoints()
		c.want("")
		c.wantRequests("get 404, delete 200")
		time.Sleep(time.Hour)
		c.wantRequests("")
		if found := c.events(); len(found) != 0 {
			t.Errorf("events %q", found)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go,
// onServiceAdd, onServiceUpdate and onServiceDelete
func TestServiceEvents(t *testing.T) {
	inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
		c.endpoints("10.0.0.1")
		c.want("")
		c.service()
		c.want("10.0.0.1 :8080")
		c.wantRequests("create 201")
		c.patchService(`{"metadata":{"labels":{"x":"y"}}}`)
		c.patchService(`{"spec":{"ports":[{"port":81}]}}`)
		c.wantRequests("")
		c.patchService(`{"spec":{"selector":{"app":"web"}}}`)
		c.want("")
		c.wantRequests("get 200, get 200, delete 200")
		c.patchService(`{"spec":{"selector":{"app":"other"}}}`)
		c.wantRequests("")
		c.patchService(`{"spec":{"selector":null}}`)
		c.want("10.0.0.1 :8080")
		c.wantRequests("create 201")
		c.deleteService()
		c.want("")
		c.wantRequests("get 200, get 404, delete 200")
		c.service()
		c.want("10.0.0.1 :8080")
		c.wantRequests("create 201")
	})
}

// Changes that others make to slices are undone, at once or after the batch period.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go,
// onEndpointSliceAdd, onEndpointSliceUpdate and onEndpointSliceDelete
func TestSliceEvents(t *testing.T) {
	for _, period := range []time.Duration{0, 5 * time.Second} {
		inCluster(t, endpointslicemirroring.Options{BatchPeriod: period, Workers: 1}, func(c *cluster) {
			c.service()
			c.endpoints("10.0.0.1")
			c.wantRequests("create 201")
			undone := func(writes string) {
				t.Helper()
				if period > 0 {
					time.Sleep(period - time.Nanosecond)
					c.wantRequests("")
					time.Sleep(time.Nanosecond)
				}
				c.want("10.0.0.1 :8080")
				c.wantRequests(writes)
			}
			c.patchSlice(`{"endpoints":[]}`)
			undone("update 200")
			c.patchSlice(`{"metadata":{"labels":{"foreign":"label"}}}`)
			undone("update 200")
			c.must(c.client.DiscoveryV1().EndpointSlices("default").Delete(c.ctx, c.slices()[0].Name,
				metav1.DeleteOptions{}))
			undone("create 201")
			// A slice that is given to another Service is replaced, and removed there.
			c.patchSlice(`{"metadata":{"labels":{"kubernetes.io/service-name":"other"}}}`)
			undone("create 201, get 404, delete 200")
		})
	}
}

// A slice that a finalizer holds back is replaced at once, and left alone.
func TestSliceHeldBack(t *testing.T) {
	inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
		c.service()
		c.endpoints("10.0.0.1")
		c.patchSlice(`{"metadata":{"finalizers":["example.com/hold"]}}`)
		c.must(c.client.DiscoveryV1().EndpointSlices("default").Delete(c.ctx, c.slices()[0].Name,
			metav1.DeleteOptions{}))
		c.want("10.0.0.1 :8080 | 10.0.0.1 :8080")
		c.wantRequests("create 201, create 201")
		c.deleteEndpoints()
		c.want("10.0.0.1 :8080")
		c.wantRequests("get 404, delete 200")
		c.patchSlice(`{"metadata":{"finalizers":null}}`)
		c.want("")
		time.Sleep(time.Hour)
		c.wantRequests("")
	})
}

// A restart writes nothing if nothing has changed, and makes up for what has changed meanwhile.
func TestRestart(t *testing.T) {
	inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
		c.service()
		c.endpoints("10.0.0.1")
		c.wantRequests("create 201")
		restart := func(meanwhile func()) {
			c.stop()
			meanwhile()
			c.start()
		}
		restart(func() {})
		c.wantRequests("")
		restart(func() { c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"10.0.0.2"}]}]}`) })
		c.want("10.0.0.2")
		c.wantRequests("update 200")
		restart(func() { c.patchSlice(`{"endpoints":[]}`) })
		c.want("10.0.0.2")
		c.wantRequests("update 200")
		restart(func() { c.patchEndpoints(skip) })
		c.want("")
		restart(func() { c.patchEndpoints(allow) })
		c.want("10.0.0.2")
		restart(func() { c.patchService(`{"spec":{"selector":{"app":"web"}}}`) })
		c.want("")
		restart(func() { c.patchService(`{"spec":{"selector":null}}`) })
		c.want("10.0.0.2")
		restart(c.deleteEndpoints)
		c.want("")
		restart(func() { c.endpoints("10.0.0.3") })
		c.want("10.0.0.3 :8080")
		restart(func() { c.deleteService(); c.deleteEndpoints() })
		c.want("")
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler.go, reconcile
func TestEventOfTooManyAddresses(t *testing.T) {
	inCluster(t, endpointslicemirroring.Options{MaxEndpointsPerSubset: 2}, func(c *cluster) {
		c.service()
		c.endpoints("10.0.0.1", "10.0.0.2")
		if found := c.events(); len(found) != 0 {
			t.Errorf("events %q", found)
		}
		c.deleteEndpoints()
		c.endpoints("10.0.0.1", "10.0.0.2", "10.0.0.3")
		c.want("10.0.0.1 10.0.0.2 :8080")
		want := "TooManyAddressesToMirror: A max of 2 addresses can be mirrored to EndpointSlices per Endpoints " +
			"subset. 1 addresses were skipped"
		if found := c.events(); len(found) != 1 || found[0] != want {
			t.Errorf("events %q", found)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	m, err := manager.New(localapi.NewTest(t).RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 1001} {
		o := endpointslicemirroring.Options{MaxEndpointsPerSubset: n}
		if _, err := endpointslicemirroring.New(m.GetClient(), m.Informers(), nil, o); err == nil {
			t.Errorf("%d endpoints per subset are no error", n)
		}
	}
}
