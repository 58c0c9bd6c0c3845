package endpointslice_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

var resource = schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}

// refusing makes the server refuse requests for slices with that verb, until restore is called.
func (c *cluster) refusing(verb string, with *apierrors.StatusError) (restore func()) {
	return c.server.Intercept(localapi.Rule{Verb: verb, Resource: "endpointslices", Err: with})
}

// lagging delays the watch of slices; everything else is shown at once.
func lagging(by time.Duration) gate.Gate {
	return gate.Funcs{OnFrame: func(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if r.Resource == "endpointslices" {
			select {
			case <-time.After(by):
			case <-ctx.Done():
			}
		}
		return gate.Verdict{}
	}}
}

// A write that fails is tried 16 times, the first retry after a second, and reported. Then only a change causes a sync.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, maxRetries and handleErr
func TestFailedCreate(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		restore := c.refusing("create", apierrors.NewInternalError(errors.New("broken")))
		c.service("web")
		c.wantWrites("create 500")
		c.wantWrites("", time.Second-1)
		c.wantWrites("create 500", 1)
		time.Sleep(10 * time.Hour)
		if creates := c.log.Entries(mine); len(creates) != 14 {
			t.Errorf("%d more creates, want 14", len(creates))
		}
		found := c.events()
		const want = "FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service default/web: failed " +
			"to " +
			"create EndpointSlice for Service default/web: "
		if len(found) == 0 || !strings.HasPrefix(found[0], want) {
			t.Errorf("events %v", found)
		}
		if s := c.loop.Stats(); s.Dropped != 1 {
			t.Errorf("stats %+v", s)
		}
		restore()
		c.log.Reset()
		c.patchService(`{"metadata":{"labels":{"x":"y"}}}`)
		c.wantWrites("create 201")
	})
}

func TestFailedUpdate(t *testing.T) {
	inCluster(t, endpointslice.Options{}, func(c *cluster) {
		c.service("web")
		synctest.Wait()
		restore := c.refusing("update", apierrors.NewConflict(resource, "web", errors.New("changed")))
		c.pod("a", "web", "10.0.0.1")
		synctest.Wait()
		restore()
		time.Sleep(5 * time.Second)
		c.want("web", "10.0.0.1 :8080")
		found := c.events()
		if len(found) == 0 ||
			!strings.HasPrefix(found[0],
				"FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service default/web: failed to "+
					"update web-") {
			t.Errorf("events %v", found)
		}
	})
}

// A delete succeeds if the slice is gone; other refusals are retried.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, finalize, where a 404 is a failure
func TestDeletes(t *testing.T) {
	for _, tt := range []struct {
		refusal *apierrors.StatusError
		events  int
	}{
		{apierrors.NewNotFound(resource, "s"), 0},
		{apierrors.NewConflict(resource, "s", errors.New("the UID in the precondition does not match")), 1},
		{apierrors.NewInternalError(errors.New("broken")), 1},
	} {
		inCluster(t, endpointslice.Options{MaxEndpointsPerSlice: 1}, func(c *cluster) {
			c.pod("a", "web", "10.0.0.1")
			c.pod("b", "web", "10.0.0.2")
			c.service("web")
			c.want("web", "10.0.0.1 :8080 | 10.0.0.2 :8080")
			restore := c.refusing("delete", tt.refusal)
			c.status("b", `{"phase":"Failed"}`)
			synctest.Wait()
			restore()
			if tt.events == 0 {
				// Somebody else has deleted it, as the answer said.
				list := c.slices("web")
				ofB := func(s discoveryv1.EndpointSlice) bool { return s.Endpoints[0].TargetRef.Name == "b" }
				c.deleteSlice(list[slices.IndexFunc(list, ofB)].Name)
			}
			time.Sleep(time.Minute)
			c.want("web", "10.0.0.1 :8080")
			if found := c.events(); len(found) != tt.events {
				t.Errorf("%v: events %v", tt.refusal, found)
			}
		})
	}
}

// In a namespace that is being deleted, one attempt is enough, and no event is recorded. Any other refusal is reported
// and retried.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler_test.go, TestReconcilerFinalizeSvcDeletionTimestamp, and
// reconciler.go, finalize
func TestForbidden(t *testing.T) {
	for _, terminating := range []bool{true, false} {
		refusal := apierrors.NewForbidden(resource, "web", errors.New("no"))
		if terminating {
			refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes,
				metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		}
		inCluster(t, endpointslice.Options{}, func(c *cluster) {
			c.refusing("create", refusal)
			c.service("web")
			time.Sleep(10 * time.Hour)
			creates, found := len(c.log.Entries(mine)), c.events()
			if terminating && (creates != 1 || len(found) != 0) {
				t.Errorf("terminating: %d creates, events %v", creates, found)
			}
			if !terminating && (creates != 16 || len(found) == 0) {
				t.Errorf("forbidden: %d creates, events %v", creates, found)
			}
		})
	}
}

// A cache that lags causes no refused request, no event, and no second slice: the sync waits for it, and goes on as
// soon as it has caught up.
//
// Source: k8s.io/endpointslice v0.37.2 util/endpointslice_tracker.go; there the wait is an error, with backoff
func TestLaggingCache(t *testing.T) {
	inClusterBehind(t, lagging(300*time.Millisecond), endpointslice.Options{MaxEndpointsPerSlice: 1}, func(c *cluster) {
		c.service("web")
		synctest.Wait()
		c.pod("a", "web", "10.0.0.1")
		synctest.Wait()
		c.want("web", "") // not yet: the cache does not show what was created
		time.Sleep(300 * time.Millisecond)
		c.want("web", "10.0.0.1 :8080")
		for range 10 {
			c.ready("a", false)
			time.Sleep(50 * time.Millisecond)
			c.pod("b", "web", "10.0.0.2")
			c.ready("a", true)
			time.Sleep(50 * time.Millisecond)
			c.must(c.client.CoreV1().Pods("default").Delete(c.ctx, "b", *metav1.NewDeleteOptions(0)))
		}
		time.Sleep(time.Minute)
		c.want("web", "10.0.0.1 :8080")
		for _, e := range c.log.Entries(func(e audit.Entry) bool { return mine(e) && e.Code >= 300 }) {
			t.Errorf("refused: %v", e)
		}
		if found := c.events(); len(found) != 0 {
			t.Errorf("events %v", found)
		}
	})
}

// A Service that is created again while the cache lags gets slices of its own.
func TestLaggingCacheAndServiceRecreated(t *testing.T) {
	inClusterBehind(t, lagging(300*time.Millisecond), endpointslice.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		synctest.Wait() // so that the first write has the pod: the caches of pods and Services follow independently
		c.service("web")
		time.Sleep(time.Second)
		before := c.only()
		c.deleteService()
		synctest.Wait()
		c.service("web")
		time.Sleep(time.Minute)
		c.want("web", "10.0.0.1 :8080")
		if after := c.only(); after.UID == before.UID || after.OwnerReferences[0].UID == before.OwnerReferences[0].UID {
			t.Errorf("slice %+v", after.ObjectMeta)
		}
		c.wantWrites("create 201, create 201, delete 200")
	})
}
