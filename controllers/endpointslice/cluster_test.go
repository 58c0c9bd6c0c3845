package endpointslice_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// cluster is an API server with the controller, and a node n in zone a, in a bubble.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	client  kubernetes.Interface
	server  *localapi.Test
	log     *audit.Log
	options endpointslice.Options
	loop    *reconcile.Controller[reconcile.Request]
	stop    func()
}

func inCluster(t *testing.T, o endpointslice.Options, f func(c *cluster)) {
	t.Helper()
	inClusterBehind(t, gate.Funcs{}, o, f)
}

// inClusterBehind is inCluster with a gate g in front of the server.
func inClusterBehind(t *testing.T, g gate.Gate, o endpointslice.Options, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Gate: g})
		c := &cluster{
			t: t, ctx: t.Context(), client: kubernetes.NewForConfigOrDie(server.RESTConfig()),
			server: server, log: server.Audit(), options: o,
		}
		c.node("n", "a")
		c.start()
		f(c)
		c.stop()
	})
}

// start runs a manager with the controller, new ones with each call.
func (c *cluster) start() {
	c.t.Helper()
	config := c.server.RESTConfig()
	config.UserAgent = endpointslice.Name
	m, err := manager.New(config, manager.Options{})
	c.must(err)
	recorder := m.GetEventRecorderFor(endpointslice.Component)
	c.loop, err = endpointslice.New(m.GetClient(), m.Informers(), recorder, c.options)
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

// mine selects the requests with which the controller wrote, or tried to write, slices.
func mine(e audit.Entry) bool {
	write := e.Verb == "create" || e.Verb == "update" || e.Verb == "patch" || e.Verb == "delete"
	return write && e.Resource == "endpointslices" && strings.HasPrefix(e.UserAgent, endpointslice.Name)
}

// wantWrites compares the controller's writes since the last call with want: "create 201, update 200". It first lets
// the settle times pass, since changes of slices are looked at after a second.
func (c *cluster) wantWrites(want string, settle ...time.Duration) {
	c.t.Helper()
	for _, d := range settle {
		time.Sleep(d)
	}
	synctest.Wait()
	var words []string
	for _, e := range c.log.Entries(mine) {
		words = append(words, fmt.Sprintf("%s %d", e.Verb, e.Code))
	}
	c.log.Reset()
	if got := strings.Join(words, ", "); got != want {
		c.t.Errorf("writes %q, want %q", got, want)
	}
}

func (c *cluster) slices(service string) []discoveryv1.EndpointSlice {
	c.t.Helper()
	synctest.Wait()
	list, err := c.client.DiscoveryV1().EndpointSlices("default").List(c.ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	c.must(err)
	return list.Items
}

// only returns the only slice of web.
func (c *cluster) only() *discoveryv1.EndpointSlice {
	c.t.Helper()
	list := c.slices("web")
	if len(list) != 1 {
		c.t.Fatalf("%d slices", len(list))
	}
	return &list[0]
}

// want compares the Service's slices, sorted, with want: "10.0.0.1 -10.0.0.2 :8080 | …". Endpoints that are not ready
// have a dash in front, and an S at the end if they serve.
func (c *cluster) want(service, want string) {
	c.t.Helper()
	var lines []string
	for _, s := range c.slices(service) {
		var words []string
		for _, e := range s.Endpoints {
			word := e.Addresses[0]
			if !*e.Conditions.Ready {
				word = "-" + word
				if *e.Conditions.Serving {
					word += "S"
				}
			}
			words = append(words, word)
		}
		slices.Sort(words)
		for _, p := range s.Ports {
			words = append(words, fmt.Sprintf(":%d", *p.Port))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	if got := strings.Join(lines, " | "); got != want {
		c.t.Errorf("slices of %s are %q, want %q", service, got, want)
	}
}

// events returns "Reason: message" of all events, and checks their source.
func (c *cluster) events() []string {
	c.t.Helper()
	synctest.Wait()
	list, err := c.client.CoreV1().Events("default").List(c.ctx, metav1.ListOptions{})
	c.must(err)
	var found []string
	for _, e := range list.Items {
		if e.Source.Component != "endpoint-slice-controller" || e.InvolvedObject.Kind != "Service" {
			c.t.Errorf("event %+v", e)
		}
		found = append(found, e.Reason+": "+e.Message)
	}
	return found
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

func (c *cluster) patchService(patch string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Services("default").Patch(c.ctx, "web", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	c.must(err)
	synctest.Wait()
}

func (c *cluster) deleteService() {
	c.t.Helper()
	c.must(c.client.CoreV1().Services("default").Delete(c.ctx, "web", metav1.DeleteOptions{}))
}

func (c *cluster) patchSlice(name, patch string) {
	c.t.Helper()
	_, err := c.client.DiscoveryV1().EndpointSlices("default").Patch(c.ctx, name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	c.must(err)
}

func (c *cluster) deleteSlice(name string) {
	c.t.Helper()
	c.must(c.client.DiscoveryV1().EndpointSlices("default").Delete(c.ctx, name, metav1.DeleteOptions{}))
}

func (c *cluster) node(name, zone string) {
	c.t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
	}
	_, err := c.client.CoreV1().Nodes().Create(c.ctx, n, metav1.CreateOptions{})
	c.must(err)
	status := `{"status":{"allocatable":{"cpu":"1"},"conditions":[{"type":"Ready","status":"True"}]}}`
	_, err = c.client.CoreV1().Nodes().Patch(c.ctx, name, types.MergePatchType, []byte(status),
		metav1.PatchOptions{}, "status")
	c.must(err)
}

// pod creates a ready pod at that address, on node n by default. It returns when the controller's cache has the pod:
// the caches of pods and Services follow independently.
func (c *cluster) pod(name, app, ip string, node ...string) {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeName:   append(node, "n")[0],
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	_, err := c.client.CoreV1().Pods("default").Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err)
	c.status(name, fmt.Sprintf(`{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}]}`, ip, ip))
	c.ready(name, true)
	synctest.Wait()
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

func (c *cluster) patchPod(name, patch string, subresources ...string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Pods("default").Patch(c.ctx, name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{}, subresources...)
	c.must(err)
	synctest.Wait() // Informers are independent: without this the controller might see later events first.
}
