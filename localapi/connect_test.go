package localapi_test

import (
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
