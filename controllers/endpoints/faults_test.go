package endpoints_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// refusing makes the server refuse requests for Endpoints with that verb, until restore is called.
func (c *cluster) refusing(verb string, with *apierrors.StatusError) (restore func()) {
	return c.server.Intercept(localapi.Rule{Verb: verb, Resource: "endpoints", Err: with})
}

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

// events returns "Reason object: message" of all events in the namespace, and checks their source.
func (c *cluster) events(namespace string) []string {
	c.t.Helper()
	list, err := c.client.CoreV1().Events(namespace).List(c.ctx, metav1.ListOptions{})
	c.must(err)
	var found []string
	for _, e := range list.Items {
		if e.Source.Component != "endpoint-controller" || e.Type != corev1.EventTypeWarning ||
			e.InvolvedObject.Kind != "Endpoints" {
			c.t.Errorf("event %+v", e)
		}
		found = append(found, e.Reason+" "+e.InvolvedObject.Name+": "+e.Message)
	}
	return found
}

// A create that fails is tried 16 times, and reported in the Service's own namespace. Then only a change causes a sync.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, maxRetries and handleErr
func TestFailedCreate(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		restore := c.refusing("create", apierrors.NewInternalError(errors.New("broken")))
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "web"},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{Port: 80}},
			},
		}
		_, err := c.client.CoreV1().Services("kube-public").Create(c.ctx, svc, metav1.CreateOptions{})
		c.must(err)
		time.Sleep(time.Hour)
		if creates := c.log.Entries(mine); len(creates) != 16 {
			t.Errorf("%d creates, want 16", len(creates))
		}
		found := c.events("kube-public")
		if len(found) == 0 ||
			!strings.HasPrefix(found[0],
				"FailedToCreateEndpoint web: Failed to create endpoint for service kube-public/web: ") {
			t.Errorf("events %v", found)
		}
		if elsewhere := c.events("default"); len(elsewhere) != 0 {
			t.Errorf("events in default: %v", elsewhere)
		}
		if s := c.loop.Stats(); s.Dropped != 1 {
			t.Errorf("stats %+v", s)
		}
		restore()
		c.log.Reset()
		_, err = c.client.CoreV1().Services("kube-public").Patch(c.ctx, "web", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
		c.must(err)
		c.wantWrites("create web 201")
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService
func TestFailedUpdate(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "endpoints"}, "web", errors.New("changed"))
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.service("web")
		synctest.Wait()
		restore := c.refusing("update", conflict)
		c.pod("a", "web", "10.0.0.1")
		synctest.Wait()
		restore()
		time.Sleep(time.Second)
		c.want("web", "10.0.0.1 :8080")
		found := c.events("default")
		if len(found) == 0 ||
			!strings.HasPrefix(found[0], "FailedToUpdateEndpoint web: Failed to update endpoint default/web: ") {
			t.Errorf("events %v", found)
		}
	})
}

// In a namespace that is being deleted, one attempt is enough, and no event is recorded. Any other refusal is reported
// and retried.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller_test.go,
// TestSyncServiceEndpointsForbidden
func TestForbidden(t *testing.T) {
	for _, terminating := range []bool{true, false} {
		refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "endpoints"}, "web", errors.New("no"))
		if terminating {
			refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes,
				metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		}
		inCluster(t, endpoints.Options{}, func(c *cluster) {
			c.refusing("create", refusal)
			c.service("web")
			time.Sleep(time.Hour)
			creates, found := len(c.log.Entries(mine)), c.events("default")
			if terminating && (creates != 1 || len(found) != 0) {
				t.Errorf("terminating: %d creates, events %v", creates, found)
			}
			if !terminating && (creates != 16 || len(found) == 0) {
				t.Errorf("forbidden: %d creates, events %v", creates, found)
			}
		})
	}
}

// A cache that lags causes no refused request, no event, and no second create: the sync waits for it, and goes on as
// soon as it has caught up.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_tracker.go; creates are not tracked there
func TestLaggingCache(t *testing.T) {
	inClusterBehind(t, lagging("endpoints", 300*time.Millisecond), endpoints.Options{}, func(c *cluster) {
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
			c.ready("a", true)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		c.want("web", "10.0.0.1 :8080")
		for _, e := range c.log.Entries(func(e audit.Entry) bool { return mine(e) && e.Code >= 300 }) {
			t.Errorf("refused: %v", e)
		}
		if found := c.events("default"); len(found) != 0 {
			t.Errorf("events %v", found)
		}
	})
}

// If Endpoints are deleted and created again while the cache lags, they are not updated in vain, and not forgotten.
func TestLaggingCacheAndServiceRecreated(t *testing.T) {
	inClusterBehind(t, lagging("endpoints", 300*time.Millisecond), endpoints.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		synctest.Wait() // so that the first write has the pod: the caches of pods and Services follow independently
		c.service("web")
		time.Sleep(time.Second)
		c.want("web", "10.0.0.1 :8080")
		c.must(c.client.CoreV1().Services("default").Delete(c.ctx, "web", metav1.DeleteOptions{}))
		synctest.Wait()
		c.want("web", "none")
		c.service("web")
		time.Sleep(2 * time.Second)
		c.want("web", "10.0.0.1 :8080")
		c.wantWrites("create web 201, delete web 200, create web 201")
		if found := c.events("default"); len(found) != 0 {
			t.Errorf("events %v", found)
		}
	})
}

// After a change of leaders, Endpoints may be in the cache before their Service is: the informers watch independently,
// perhaps at replicas of the API that lag. The Endpoints stay.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService; there they are
// deleted, and created again when the Service is seen
func TestEndpointsSeenBeforeTheirService(t *testing.T) {
	inClusterBehind(t, lagging("services", time.Minute), endpoints.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		_, err := c.client.CoreV1().Endpoints("default").Create(c.ctx, &corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web", Labels: map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"},
			},
			Subsets: []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}}, Ports: []corev1.EndpointPort{{Port: 8080}},
			}},
		}, metav1.CreateOptions{})
		c.must(err)
		time.Sleep(30 * time.Second)
		c.want("web", "10.0.0.1 :8080")
		c.wantWrites("")
		time.Sleep(time.Minute)
		c.want("web", "10.0.0.1 :8080")
		c.wantWrites("update web 200") // it lacks the pod's name
	})
}

// A Service and its Endpoints are created again just before the controller deletes the Endpoints of the earlier one:
// the new ones stay.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService; there they are
// deleted
func TestDeletesOnlyWhatItKnows(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		replace := func(_ context.Context, r *gate.Request) gate.Verdict {
			if !strings.HasPrefix(r.UserAgent, endpoints.Name) {
				return gate.Verdict{}
			}
			ep := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			err1 := c.client.CoreV1().Endpoints("default").Delete(c.ctx, "web", metav1.DeleteOptions{})
			_, err2 := c.client.CoreV1().Endpoints("default").Create(c.ctx, ep, metav1.CreateOptions{})
			_, err3 := c.client.CoreV1().Services("default").Create(c.ctx, &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "web"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}, metav1.CreateOptions{})
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Error(err)
			}
			return gate.Verdict{}
		}
		c.server.Intercept(localapi.Rule{Verb: "delete", Resource: "endpoints", Do: replace})
		c.service("web")
		synctest.Wait()
		c.writes()
		c.must(c.client.CoreV1().Services("default").Delete(c.ctx, "web", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		c.wantWrites("delete web 409")
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService
func TestTriggerTimeAnnotation(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.service("web")
		synctest.Wait()
		annotation := func() string {
			synctest.Wait()
			ep, err := c.client.CoreV1().Endpoints("default").Get(c.ctx, "web", metav1.GetOptions{})
			c.must(err)
			return ep.Annotations["endpoints.kubernetes.io/last-change-trigger-time"]
		}
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
