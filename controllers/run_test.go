package controllers_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// newManager returns a manager on a new API server in memory.
func newManager(t *testing.T, o manager.Options) *manager.Manager {
	t.Helper()
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
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
		if _, err := m.Client().CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := m.Client().CoreV1().Endpoints("default").Get(ctx, "web", metav1.GetOptions{}); err != nil {
			t.Errorf("the endpoints controller did nothing: %v", err)
		}
		slices, err := m.Client().DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil || len(slices.Items) != 1 {
			t.Errorf("the endpointslice controller did nothing: %v, %v", slices.Items, err)
		}
		w := httptest.NewRecorder()
		registry.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range []string{
			`workqueue_adds_total{name="endpoints-controller"}`, `workqueue_depth{name="deployment-controller"}`,
			`workqueue_depth{name="replicaset-controller"}`, `workqueue_depth{name="garbage_collector_attempt_to_delete"}`,
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

func TestOnlySelectedControllersAreBuilt(t *testing.T) {
	m := newManager(t, manager.Options{})
	if err := controllers.Add(m, controllers.Options{Selection: []string{"*", "-endpoints", "-endpointslice", "-garbagecollector"}}); err != nil {
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

func ExampleEnabled() {
	enabled, err := controllers.Enabled([]string{"*", "-endpoints"})
	for _, d := range enabled {
		fmt.Println(d.Name)
	}
	fmt.Println(err)
	_, err = controllers.Enabled([]string{"deploy"})
	fmt.Println(err)
	// Output:
	// deployment-controller
	// endpointslice-controller
	// garbage-collector-controller
	// replicaset-controller
	// <nil>
	// "deploy" is not in the list of known controllers: deployment-controller (deployment), endpoints-controller (endpoint, endpoints), endpointslice-controller (endpointslice), garbage-collector-controller (garbagecollector), replicaset-controller (replicaset)
}
