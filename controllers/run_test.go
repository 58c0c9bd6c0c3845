package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// newManager returns a manager on a new API server in memory.
func newManager(t *testing.T, o manager.Options) *manager.Manager {
	t.Helper()
	return newAuditedManager(t, o, nil)
}

// newAuditedManager is newManager on a server with an audit log.
func newAuditedManager(t *testing.T, o manager.Options, log *audit.Log) *manager.Manager {
	t.Helper()
	server := localapi.NewTestWith(t, localapi.Options{Audit: log})
	m, err := manager.New(server.RESTConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAllControllersRunOnAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := metrics.New()
		m := newManager(t, manager.Options{Metrics: registry})
		if err := controllers.Add(m, controllers.Options{}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}

		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		clients := kubernetes.NewForConfigOrDie(m.GetConfig())
		if _, err := clients.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := clients.CoreV1().Endpoints("default").Get(ctx, "web", metav1.GetOptions{}); err != nil {
			t.Errorf("the endpoints controller did nothing: %v", err)
		}
		slices, err := clients.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil || len(slices.Items) != 1 {
			t.Errorf("the endpointslice controller did nothing: %v, %v", slices.Items, err)
		}
		unknown := []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Gadget", Name: "g", UID: "g"}}
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: unknown}}
		if _, err := clients.CoreV1().ConfigMaps("default").Create(ctx, child, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		ready := httptest.NewRecorder()
		m.HealthHandler().ServeHTTP(ready, httptest.NewRequest("GET", "/readyz", nil))
		if text := ready.Body.String(); ready.Code != http.StatusOK ||
			!strings.Contains(text, "[+]garbage-collector-controller: left alone") ||
			!strings.Contains(text, "owner of ConfigMap default/child") {
			t.Errorf("readyz: %d %s", ready.Code, text)
		}
		w := httptest.NewRecorder()
		registry.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range []string{
			`workqueue_adds_total{name="endpoints-controller"}`, `workqueue_depth{name="deployment-controller"}`,
			`workqueue_depth{name="replicaset-controller"}`,
			`workqueue_depth{name="garbage_collector_attempt_to_delete"}`,
			`garbage_collector_unresolved_objects 1`,
			`informer_objects{resource="services"} 2`,
		} {
			if !strings.Contains(w.Body.String(), line) {
				t.Errorf("metrics lack %s", line)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error("run:", err)
		}
	})
}

// Each controller has its own client, and so its own share of requests: the manager's limit applies to each.
func TestControllersHaveClientsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &audit.Log{}
		m := newAuditedManager(t, manager.Options{}, log)
		if err := controllers.Add(m, controllers.Options{}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		labels := map[string]string{"app": "web"}
		pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image:1"}}}
		clients := kubernetes.NewForConfigOrDie(m.GetConfig())
		_, err1 := clients.CoreV1().Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		_, err2 := clients.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
			},
		}, metav1.CreateOptions{})
		_, err3 := clients.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: "orphan",
				OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "nobody"},
				},
			}}, metav1.CreateOptions{})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for what, name := range map[string]string{
			"create replicasets": "deployment-controller", "create pods": "replicaset-controller",
			"create endpoints":      "endpoints-controller",
			"create endpointslices": "endpointslice-controller", "delete configmaps": "garbage-collector-controller",
		} {
			wrote := log.Entries(func(e audit.Entry) bool {
				return e.Verb+" "+e.Resource == what && strings.HasSuffix(e.UserAgent, "/"+name)
			})
			if len(wrote) != 1 {
				t.Errorf("%s: %d times by %s, want 1", what, len(wrote), name)
			}
		}
		for _, e := range log.Entries(func(e audit.Entry) bool { return e.Mutates() && e.Resource == "events" }) {
			if !strings.HasSuffix(e.UserAgent, "/events") {
				t.Errorf("an event was sent by %s", e.UserAgent)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error("run:", err)
		}
	})
}

func TestOnlySelectedControllersAreBuilt(t *testing.T) {
	m := newManager(t, manager.Options{})
	if err := controllers.Add(m,
		controllers.Options{
			Selection: []string{"*", "-endpoints", "-endpointslice", "-endpointslicemirroring", "-garbagecollector"},
		}); err != nil {
		t.Fatal(err)
	}
	var resources []string
	for _, h := range m.Informers().Health() {
		resources = append(resources, h.Resource)
	}
	slices.Sort(resources)
	if want := []string{"deployments.apps", "pods", "replicasets.apps"}; !slices.Equal(resources, want) {
		t.Errorf("informers of %q, want %q: what nobody needs is not watched", resources, want)
	}
	if err := controllers.Add(m, controllers.Options{Selection: []string{"deploy"}}); err == nil {
		t.Error("an unknown name was accepted")
	}
}

// A controller is built by its name, and added to a manager.
func ExampleNew() {
	m, err := manager.New(&rest.Config{Host: "https://cluster.example"}, manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	controller, err := controllers.New(m, deployment.Name, controllers.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Add(controller), m.Controllers()[0].Name())
	_, err = controllers.New(m, "deploy", controllers.Options{})
	fmt.Println(err != nil)
	// Output:
	// <nil> deployment-controller
	// true
}

func ExampleEnabled() {
	enabled, err := controllers.Enabled([]string{"*", "-endpoints"})
	for _, name := range enabled {
		fmt.Println(name)
	}
	fmt.Println(err)
	_, err = controllers.Enabled([]string{"deploy"})
	fmt.Println(err)
	// Output:
	// deployment-controller
	// endpointslice-controller
	// endpointslice-mirroring-controller
	// garbage-collector-controller
	// replicaset-controller
	// <nil>
	// "deploy" is not in the list of known controllers: deployment-controller (deployment), endpoints-controller (endpoint, endpoints), endpointslice-controller (endpointslice), endpointslice-mirroring-controller (endpointslicemirroring), garbage-collector-controller (garbagecollector), replicaset-controller (replicaset)
}
