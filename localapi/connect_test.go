package localapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
)

// TestNothingToConnectTo asks for what needs a running container: the answer says that there is none, and what to do.
func TestNothingToConnectTo(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.PodSpec{
		NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	client := kubernetes.NewForConfigOrDie(localapi.NewTest(t, pod, service, node).RESTConfig()).CoreV1().RESTClient()
	for _, path := range []string{
		"namespaces/default/pods/web/exec?command=ls", "namespaces/default/pods/web/attach",
		"namespaces/default/pods/web/portforward",
		"namespaces/default/pods/web/proxy/index.html", "namespaces/default/pods/http:web:80/proxy",
		"namespaces/default/pods/web/log",
		"namespaces/default/services/web:80/proxy/", "nodes/node-1/proxy/metrics",
	} {
		err := client.Get().RequestURI("/api/v1/" + path).Do(t.Context()).Error()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "runs no containers") ||
			!strings.Contains(err.Error(), "kind") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]func(error) bool{
		"namespaces/default/pods/none/exec":     apierrors.IsNotFound,
		"namespaces/default/pods/web/exec/more": apierrors.IsNotFound,
	} {
		if err := client.Post().RequestURI("/api/v1/" + path).Do(t.Context()).Error(); !want(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestHead: only custom resources and proxies have a route for HEAD, as on a kube-apiserver. The answer has no body.
func TestHead(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if err := server.Seed(t.Context(), fromYAML(t, gadgetsYAML)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/apis/example.com/v1/gadgets":                    200,
		"/api/v1/namespaces/default/pods/web/proxy":       404,
		"/api/v1/namespaces":                              405,
		"/api/v1/namespaces/default":                      405,
		"/api/v1/namespaces/default/pods/web/exec":        405,
		"/api/v1/namespaces/default/pods/web/attach":      405,
		"/api/v1/namespaces/default/pods/web/portforward": 405,
	} {
		head := send(t, config, request{method: http.MethodHead, path: path})
		if body, err := io.ReadAll(head.Body); head.StatusCode != want || len(body) > 0 || err != nil {
			t.Errorf("HEAD %s: status %d, %q, %v; want %d", path, head.StatusCode, body, err, want)
		}
	}
}
