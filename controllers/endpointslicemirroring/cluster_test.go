package endpointslicemirroring_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
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
	options endpointslicemirroring.Options
	loop    *reconcile.Controller[reconcile.Request]
	stop    func()
}

func inCluster(t *testing.T, o endpointslicemirroring.Options, f func(c *cluster)) {
	t.Helper()
	inClusterBehind(t, gate.Funcs{}, o, f)
}

// inClusterBehind is inCluster with a gate g in front of the server.
func inClusterBehind(t *testing.T, g gate.Gate, o endpointslicemirroring.Options, f func(c *cluster)) {
	t.Helper()
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
	config.UserAgent = endpointslicemirroring.Name
	m, err := manager.New(config, manager.Options{})
	c.must(err)
	recorder := m.GetEventRecorderFor(endpointslicemirroring.Component)
	c.loop, err = endpointslicemirroring.New(m.GetClient(), m.Informers(), recorder, c.options)
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

// mine selects the requests with which the controller wrote, or tried to write, and its live reads.
func mine(e audit.Entry) bool {
	return strings.HasPrefix(e.UserAgent, endpointslicemirroring.Name) && e.Namespace != "" && e.Resource != "events" &&
		e.Verb != "list" && e.Verb != "watch"
}

// wantRequests compares the controller's writes and live reads since the last call with want: "create 201, get 404".
func (c *cluster) wantRequests(want string) {
	c.t.Helper()
	synctest.Wait()
	var words []string
	for _, e := range c.log.Entries(mine) {
		words = append(words, fmt.Sprintf("%s %d", e.Verb, e.Code))
	}
	c.log.Reset()
	if got := strings.Join(words, ", "); got != want {
		c.t.Errorf("requests %q, want %q", got, want)
	}
}

func (c *cluster) slices() []discoveryv1.EndpointSlice {
	c.t.Helper()
	synctest.Wait()
	list, err := c.client.DiscoveryV1().EndpointSlices("default").List(c.ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	c.must(err)
	return list.Items
}

// want compares the slices of web, sorted, with want: "10.0.0.1 :8080 | …".
func (c *cluster) want(want string) {
	c.t.Helper()
	var lines []string
	for _, s := range c.slices() {
		var words []string
		for _, e := range s.Endpoints {
			words = append(words, e.Addresses[0])
		}
		for _, p := range s.Ports {
			words = append(words, fmt.Sprintf(":%d", *p.Port))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	slices.Sort(lines)
	if got := strings.Join(lines, " | "); got != want {
		c.t.Errorf("slices %q, want %q", got, want)
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
		if e.Source.Component != "endpoint-slice-mirroring-controller" || e.InvolvedObject.Kind != "Endpoints" ||
			e.Type != corev1.EventTypeWarning {
			c.t.Errorf("event %+v", e)
		}
		found = append(found, e.Reason+": "+e.Message)
	}
	return found
}

// service creates web, without a selector. It returns when the controller has seen it.
func (c *cluster) service() {
	c.t.Helper()
	_, err := c.client.CoreV1().Services("default").Create(c.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	c.must(err)
	synctest.Wait()
}

// endpoints creates web at these addresses, port 8080. It returns when the controller has seen it.
func (c *cluster) endpoints(ips ...string) {
	c.t.Helper()
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Port: 8080}}}
	for _, ip := range ips {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	_, err := c.client.CoreV1().Endpoints("default").Create(c.ctx, &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "web"}, Subsets: []corev1.EndpointSubset{s},
	}, metav1.CreateOptions{})
	c.must(err)
	synctest.Wait()
}

func (c *cluster) patchEndpoints(patch string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Endpoints("default").Patch(c.ctx, "web", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
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

func (c *cluster) patchSlice(patch string) {
	c.t.Helper()
	_, err := c.client.DiscoveryV1().EndpointSlices("default").Patch(c.ctx, c.slices()[0].Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	c.must(err)
	synctest.Wait()
}

func (c *cluster) deleteEndpoints() {
	c.t.Helper()
	c.must(c.client.CoreV1().Endpoints("default").Delete(c.ctx, "web", metav1.DeleteOptions{}))
	synctest.Wait()
}

func (c *cluster) deleteService() {
	c.t.Helper()
	c.must(c.client.CoreV1().Services("default").Delete(c.ctx, "web", metav1.DeleteOptions{}))
	synctest.Wait()
}
