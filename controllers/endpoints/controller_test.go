package endpoints_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// cluster is an API server with the controller, in a bubble.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	client  kubernetes.Interface
	server  *localapi.Test
	log     *audit.Log
	options endpoints.Options
	loop    *reconcile.Controller[reconcile.Request]
	stop    func()
}

func inCluster(t *testing.T, o endpoints.Options, f func(c *cluster)) {
	inClusterBehind(t, gate.Funcs{}, o, f)
}

// inClusterBehind is inCluster with a gate g in front of the server.
func inClusterBehind(t *testing.T, g gate.Gate, o endpoints.Options, f func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Gate: g})
		c := &cluster{
			t: t, ctx: t.Context(), client: kubernetes.NewForConfigOrDie(server.RESTConfig()),
			server: server, log: server.Audit(), options: o,
		}
		c.start()
		f(c)
		c.stop()
	})
}

// start runs a manager with the controller, new ones with each call.
func (c *cluster) start() {
	c.t.Helper()
	config := c.server.RESTConfig()
	config.UserAgent = endpoints.Name
	m, err := manager.New(config, manager.Options{})
	c.must(err)
	c.loop, err = endpoints.New(m.GetClient(), m.Informers(), m.GetEventRecorderFor(endpoints.Component), c.options)
	c.must(err)
	c.must(m.Add(c.loop))
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("run: %v", err)
		}
	}
	synctest.Wait()
	if err := c.loop.Health(); err != nil {
		c.t.Errorf("health: %v", err)
	}
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// mine selects the requests with which the controller wrote, or tried to write, Endpoints.
func mine(e audit.Entry) bool {
	write := e.Verb == "create" || e.Verb == "update" || e.Verb == "patch" || e.Verb == "delete"
	return write && e.Resource == "endpoints" && strings.HasPrefix(e.UserAgent, endpoints.Name)
}

// writes returns and forgets the controller's writes of Endpoints: "create web 201".
func (c *cluster) writes() string {
	var words []string
	for _, e := range c.log.Entries(mine) {
		words = append(words, fmt.Sprintf("%s %s %d", e.Verb, e.Name, e.Code))
	}
	c.log.Reset()
	return strings.Join(words, ", ")
}

func (c *cluster) wantWrites(want string) {
	c.t.Helper()
	synctest.Wait()
	if got := c.writes(); got != want {
		c.t.Errorf("writes %q, want %q", got, want)
	}
}

// endpoints returns "web: 10.0.0.1,10.0.0.2 -10.0.0.3 :8080" for each subset, with a dash before addresses that are not
// ready.
func (c *cluster) endpoints(name string) string {
	c.t.Helper()
	synctest.Wait()
	ep, err := c.client.CoreV1().Endpoints("default").Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		return "none"
	}
	words := []string{}
	for _, s := range ep.Subsets {
		for _, a := range s.Addresses {
			words = append(words, a.IP)
		}
		for _, a := range s.NotReadyAddresses {
			words = append(words, "-"+a.IP)
		}
		for _, p := range s.Ports {
			words = append(words, fmt.Sprintf(":%d", p.Port))
		}
	}
	return strings.Join(words, " ")
}

func (c *cluster) want(name, want string) {
	c.t.Helper()
	if got := c.endpoints(name); got != want {
		c.t.Errorf("endpoints of %s are %q, want %q", name, got, want)
	}
}

func (c *cluster) service(name string, change ...func(*corev1.Service)) {
	c.t.Helper()
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
	for _, f := range change {
		f(svc)
	}
	_, err := c.client.CoreV1().Services("default").Create(c.ctx, svc, metav1.CreateOptions{})
	c.must(err)
	synctest.Wait()
}

// pod creates a ready pod at that address, on node n.
func (c *cluster) pod(name, app, ip string) {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	_, err := c.client.CoreV1().Pods("default").Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err)
	c.status(name, fmt.Sprintf(`{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}]}`, ip, ip))
	c.ready(name, true)
}

func (c *cluster) status(name, status string) {
	c.t.Helper()
	c.patchPod(name, `{"status":`+status+`}`, "status")
}

func (c *cluster) ready(name string, ready bool) {
	c.t.Helper()
	status := map[bool]string{true: "True", false: "False"}[ready]
	c.status(name,
		fmt.Sprintf(`{"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":%q}]}`, status,
			time.Now().UTC().Format(time.RFC3339)))
}

func (c *cluster) label(name, app string) {
	c.t.Helper()
	c.patchPod(name, fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, app))
}

func (c *cluster) patchPod(name, patch string, subresources ...string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Pods("default").Patch(c.ctx, name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, subresources...)
	c.must(err)
	synctest.Wait() // Informers are independent: without this the controller might see later events first.
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, its event handlers, and
// k8s.io/endpointslice v0.37.2 util/controller_utils.go
func TestPodEvents(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.service("web")
		c.service("other")
		synctest.Wait()
		c.want("web", "")
		c.pod("a", "web", "10.0.0.1")
		c.pod("b", "web", "10.0.0.2")
		c.want("web", "10.0.0.1 10.0.0.2 :8080")
		c.writes()

		c.ready("a", false)
		c.want("web", "10.0.0.2 -10.0.0.1 :8080")
		c.wantWrites("update web 200")
		c.patchPod("a", `{"metadata":{"annotations":{"x":"y"}}}`)
		c.wantWrites("")
		c.label("a", "other") // from one Service to the other
		c.want("web", "10.0.0.2 :8080")
		c.want("other", "-10.0.0.1 :8080")
		c.writes()
		c.label("a", "none")
		c.want("other", "")
		c.wantWrites("update other 200")
		c.label("a", "web")
		c.want("web", "10.0.0.2 -10.0.0.1 :8080")
		c.writes()

		// A pod that ends leaves at once, though its readiness did not change.
		c.status("a", `{"phase":"Failed"}`)
		c.want("web", "10.0.0.2 :8080")
		c.wantWrites("update web 200")

		c.must(c.client.CoreV1().Pods("default").Delete(c.ctx, "b", metav1.DeleteOptions{}))
		c.want("web", "") // not gone, but being deleted
		c.wantWrites("update web 200")
		c.status("b", `{"message":"still there"}`)
		c.wantWrites("")
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService
func TestServiceEvents(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web", func(s *corev1.Service) { s.Labels = map[string]string{"x": "1"} })
		c.want("web", "10.0.0.1 :8080")
		c.wantWrites("create web 201")
		services := c.client.CoreV1().Services("default")
		patch := func(p string) {
			_, err := services.Patch(c.ctx, "web", types.MergePatchType, []byte(p), metav1.PatchOptions{})
			c.must(err)
			synctest.Wait()
		}
		patch(`{"metadata":{"annotations":{"not":"ours"}}}`)
		c.wantWrites("")
		patch(`{"metadata":{"labels":{"x":"2"}}}`)
		c.wantWrites("update web 200")
		patch(`{"spec":{"ports":[{"port":80,"targetPort":9090}]}}`)
		c.want("web", "10.0.0.1 :9090")
		patch(`{"spec":{"selector":null}}`) // from now on somebody else publishes the addresses
		c.writes()
		c.ready("a", false)
		c.want("web", "10.0.0.1 :9090")
		c.wantWrites("")
		c.must(services.Delete(c.ctx, "web", metav1.DeleteOptions{}))
		c.want("web", "none")
		c.wantWrites("delete web 200") // once
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, onEndpointsDelete; a manual edit
// is no event there either
func TestEndpointsEvents(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		c.want("web", "10.0.0.1 :8080")
		eps := c.client.CoreV1().Endpoints("default")
		c.must(eps.Delete(c.ctx, "web", metav1.DeleteOptions{}))
		c.want("web", "10.0.0.1 :8080")
		_, err := eps.Patch(c.ctx, "web", types.MergePatchType,
			[]byte(`{"subsets":[{"addresses":[{"ip":"9.9.9.9"}]}]}`), metav1.PatchOptions{})
		c.must(err)
		c.want("web", "9.9.9.9")
		c.ready("a", false)
		c.want("web", "-10.0.0.1 :8080")
	})
}

// At the start, Endpoints without a Service are deleted, except locks for electing a leader. Later, only those that the
// controller has written are deleted: what is applied from a file may come before its Service.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, checkLeftoverEndpoints
func TestLeftovers(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		leave := func(name string, labels, annotations map[string]string) {
			ep := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}
			_, err := c.client.CoreV1().Endpoints("default").Create(c.ctx, ep, metav1.CreateOptions{})
			c.must(err)
		}
		leave("lone", nil, nil)
		leave("lock", nil, map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"})
		leave("ours", map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}, nil)
		c.want("lone", "")
		c.want("lock", "")
		c.want("ours", "none")
		c.stop()
		c.start()
		c.want("lone", "none")
		c.want("lock", "")
	})
}

// A restart writes nothing if nothing has changed.
func TestRestart(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		c.service("web")
		c.service("headless", func(s *corev1.Service) { s.Spec.ClusterIP = "None" })
		synctest.Wait()
		c.stop()
		c.writes()
		c.start()
		c.wantWrites("")
		time.Sleep(10 * time.Minute)
		c.wantWrites("")
	})
}

// Changes of pods within the batch period cause one write; those of the Service do not wait.
func TestBatchPeriod(t *testing.T) {
	inCluster(t, endpoints.Options{BatchPeriod: time.Second}, func(c *cluster) {
		c.service("web")
		c.wantWrites("create web 201")
		for i := range 5 {
			c.pod(fmt.Sprint("p", i), "web", fmt.Sprintf("10.0.0.%d", i+1))
		}
		c.wantWrites("")
		time.Sleep(time.Second)
		c.want("web", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 :8080")
		c.wantWrites("update web 200")
	})
}

// Deleting a Service and creating it again at once causes no failed request and no event.
func TestServiceRecreated(t *testing.T) {
	inCluster(t, endpoints.Options{}, func(c *cluster) {
		c.pod("a", "web", "10.0.0.1")
		for range 20 {
			c.service("web")
			c.must(c.client.CoreV1().Services("default").Delete(c.ctx, "web", metav1.DeleteOptions{}))
		}
		c.service("web")
		time.Sleep(5 * time.Second)
		c.want("web", "10.0.0.1 :8080")
		for _, e := range c.log.Entries(mine) {
			if e.Code >= 300 && e.Verb != "delete" {
				t.Errorf("%v", e)
			}
		}
		list, err := c.client.CoreV1().Events("").List(c.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 0 {
			t.Errorf("events %v, %v", list.Items, err)
		}
	})
}
