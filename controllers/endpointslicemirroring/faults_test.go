package endpointslicemirroring_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

var resource = schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}

// lagging delays the watch of a resource; everything else is shown at once.
func lagging(resource string, by time.Duration) gate.Gate {
	return gate.Funcs{OnFrame: func(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if r.Resource == resource {
			select {
			case <-time.After(by):
			case <-ctx.Done():
			}
		}
		return gate.Verdict{}
	}}
}

// A write that fails is tried 16 times, the first retry after a second. Then only a change causes a sync. In a
// namespace that is being deleted, one attempt is enough.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go,
// maxRetries and handleErr, and reconciler_test.go, TestReconcilerFinalizeSvcDeletionTimestamp
func TestFailedCreate(t *testing.T) {
	refused := apierrors.NewForbidden(resource, "", errors.New("no"))
	terminating := apierrors.NewForbidden(resource, "", errors.New("no"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, tt := range []struct {
		refusal *apierrors.StatusError
		creates int
	}{{refused, 16}, {terminating, 1}} {
		inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
			restore := c.server.Intercept(localapi.Rule{Verb: "create", Resource: "endpointslices", Err: tt.refusal})
			c.service()
			c.endpoints("10.0.0.1")
			c.wantRequests("create 403")
			time.Sleep(time.Second - 1)
			c.wantRequests("")
			time.Sleep(time.Hour)
			if creates := c.log.Entries(mine); len(creates) != tt.creates-1 {
				t.Errorf("%d more creates, want %d", len(creates), tt.creates-1)
			}
			c.want("")
			restore()
			c.log.Reset()
			c.patchEndpoints(`{"metadata":{"labels":{"x":"y"}}}`)
			c.want("10.0.0.1 :8080")
			c.wantRequests("create 201")
		})
	}
}

// A slice that somebody else has written in between is planned anew. kube-controller-manager overwrites it.
func TestConflict(t *testing.T) {
	conflict := apierrors.NewConflict(resource, "web", errors.New("changed"))
	inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
		c.server.Intercept(localapi.Rule{Verb: "update", Resource: "endpointslices", Nth: 1, Err: conflict})
		c.service()
		c.endpoints("10.0.0.1")
		c.wantRequests("create 201")
		c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"10.0.0.2"}]}]}`)
		c.wantRequests("update 409")
		time.Sleep(time.Second)
		c.want("10.0.0.2")
		c.wantRequests("update 200")
	})
}

// A delete succeeds if the slice is gone; other refusals are retried, and so is the question before.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler.go, deleteEndpoints, where a 404
// is a failure
func TestDeletes(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("broken"))
	conflict := apierrors.NewConflict(resource, "s", errors.New("the UID does not match"))
	for _, tt := range []struct {
		verb, resource string
		refusal        *apierrors.StatusError
		want           string
	}{
		{"delete", "endpointslices", apierrors.NewNotFound(resource, "s"), "get 404, delete 404"},
		{"delete", "endpointslices", conflict, "get 404, delete 409, get 404, delete 200"},
		{"delete", "endpointslices", internal, "get 404, delete 500, get 404, delete 200"},
		{"get", "endpoints", internal, "get 500, get 404, delete 200"},
	} {
		inCluster(t, endpointslicemirroring.Options{}, func(c *cluster) {
			c.server.Intercept(localapi.Rule{Verb: tt.verb, Resource: tt.resource, Nth: 1, Err: tt.refusal})
			c.service()
			c.endpoints("10.0.0.1")
			c.wantRequests("create 201")
			c.deleteEndpoints()
			time.Sleep(2 * time.Second)
			c.wantRequests(tt.want)
		})
	}
}

// A cache that lags causes no refused request and no second slice: the sync waits for it, and goes on as soon as it has
// caught up.
//
// Source: k8s.io/endpointslice v0.37.2 util/endpointslice_tracker.go; there the wait is an error, with backoff
func TestLaggingCache(t *testing.T) {
	lag := lagging("endpointslices", 300*time.Millisecond)
	inClusterBehind(t, lag, endpointslicemirroring.Options{}, func(c *cluster) {
		c.service()
		c.endpoints("10.0.0.1")
		c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"10.0.0.2"}]}]}`)
		c.want("10.0.0.1 :8080") // not yet: the cache does not show what was created
		time.Sleep(300 * time.Millisecond)
		c.want("10.0.0.2")
		c.wantRequests("create 201, update 200")
		for range 10 {
			c.patchEndpoints(`{"subsets":[{"addresses":[{"ip":"10.0.0.3"}]}]}`)
			time.Sleep(50 * time.Millisecond)
			c.deleteEndpoints()
			time.Sleep(50 * time.Millisecond)
			c.endpoints("10.0.0.4")
		}
		time.Sleep(time.Minute)
		c.want("10.0.0.4 :8080")
		for _, e := range c.log.Entries(func(e audit.Entry) bool { return mine(e) && e.Code >= 300 }) {
			if e.Verb != "get" {
				t.Errorf("refused: %v", e)
			}
		}
	})
}

// After a change of leaders, slices may be in the cache before their Service or Endpoints are: the informers watch
// independently, perhaps at replicas of the API that lag. The slices stay, and are brought up to date when the rest
// arrives.
func TestSlicesSeenFirst(t *testing.T) {
	for _, late := range []string{"services", "endpoints"} {
		inClusterBehind(t, lagging(late, time.Minute), endpointslicemirroring.Options{}, func(c *cluster) {
			c.service()
			c.endpoints("10.0.0.1")
			_, err := c.client.DiscoveryV1().EndpointSlices("default").Create(c.ctx, &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{
					discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: endpointslicemirroring.ManagedBy,
				}},
				AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
			}, metav1.CreateOptions{})
			c.must(err)
			c.want("10.0.0.1")
			time.Sleep(25 * time.Second)
			c.wantRequests("get 200, get 200, get 200, get 200, get 200, get 200") // at 0, 10 and 20 s
			time.Sleep(time.Minute)
			c.want("10.0.0.1 :8080")
			if name := c.slices()[0].Name; name != "web-1" {
				t.Errorf("%s watched late: the slice was replaced by %s", late, name)
			}
			writes := c.log.Entries(func(e audit.Entry) bool { return mine(e) && e.Verb != "get" })
			if len(writes) != 1 || writes[0].Verb != "update" {
				t.Errorf("%s watched late: %v", late, writes)
			}
		})
	}
}
