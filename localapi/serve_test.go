package localapi_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServeStopsWithItsContext(t *testing.T) {
	server, _ := start(t, localapi.Options{})
	ctx, stop := context.WithCancel(t.Context())
	listener, err := localapi.Listen(ctx, "localhost:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	config := &rest.Config{Host: "http://" + listener.Addr().String(), Transport: transport}
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	mustCreate(t, maps, configMap("a"))
	w, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Object.(*corev1.ConfigMap).Name != "a" {
		t.Errorf("first event: %+v", e)
	}
	stop()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	for range w.ResultChan() { //nolint:revive // ends when the server has ended the watch
	}
}

func TestCloseStopsServing(t *testing.T) {
	server, _ := start(t, localapi.Options{})
	listener, err := localapi.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context(), listener) }()
	if err := server.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// TestStopDoesNotWaitForUnaskedConnections: clients keep connections in reserve on which they have not asked anything.
func TestStopDoesNotWaitForUnaskedConnections(t *testing.T) {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l, err := localapi.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	for range 3 {
		unasked, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer unasked.Close()
	}
	response, err := http.Get("http://" + l.Addr().String() + "/readyz") // Accepted after the others.
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	begin := time.Now()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestListenKeepsToLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:0", "example.com:0", "nonsense"} {
		if l, err := localapi.Listen(t.Context(), addr); err == nil {
			_ = l.Close()
			t.Errorf("listened at %s", addr)
		}
	}
}

func TestHandlerInAnyServer(t *testing.T) {
	server, config := start(t, localapi.Options{})
	response := send(t, config, request{path: "/api/v1/namespaces?watch=true"})
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	if err != nil || line == "" {
		t.Errorf("first frame: %q, %v", line, err)
	}
	_ = response.Body.Close()
	if server.Handler() == nil {
		t.Error("no handler")
	}
}

func TestPanicsAreAnswered(t *testing.T) {
	bad := &resource.Definition{
		GroupVersion: corev1.SchemeGroupVersion, Kind: "ConfigMap", Plural: "configmaps", Namespaced: true,
		New: newConfigMap, NewList: newConfigMapList,
		Default: func(object) { panic("out of order") },
	}
	_, config := start(t, localapi.Options{}.Serving(bad))
	code, body := answer(t, config, request{
		ctx:    klog.NewContext(t.Context(), klog.Logger{}), // the stack is logged
		method: "POST", path: "/api/v1/namespaces/default/configmaps", body: `{"metadata":{"name":"a"}}`,
	})
	if code != 500 || body != "This request caused apiserver to panic: out of order\n" {
		t.Errorf("answer to a panic: %d %q", code, body)
	}
}

func TestSeed(t *testing.T) {
	pod := newPod("p", "node")
	pod.Namespace, pod.UID, pod.Status.Phase = "team", "fixed", corev1.PodRunning
	server := localapi.NewTest(t, pod, configMap("a", "k", "v"))
	client := clientset(t, server.RESTConfig())
	got, err := client.CoreV1().Pods("team").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || got.UID != "fixed" || got.Status.Phase != corev1.PodRunning ||
		got.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("seeded pod: %v, %+v", err, got)
	}
	if cm, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil ||
		cm.UID == "" || cm.Data["k"] != "v" {
		t.Errorf("seeded config map: %v, %+v", err, cm)
	}
	if writes := server.Audit().Writes(); len(writes) != 0 {
		t.Errorf("seeding was recorded as %v", writes)
	}
	if err := server.Seed(t.Context(), configMap("a")); err == nil {
		t.Error("seeded an object twice")
	}
	read := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"},
		"data": map[string]any{"k": "v"},
	}}
	if err := server.Seed(t.Context(), read); err != nil {
		t.Errorf("seed what was read from a file: %v", err)
	}
	if cm, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "b", metav1.GetOptions{}); err != nil ||
		cm.Data["k"] != "v" {
		t.Errorf("seeded without a Go type: %v, %+v", err, cm)
	}
}
