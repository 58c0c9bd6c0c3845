package localapi_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/localapi"
)

// Protobuf can carry values that JSON cannot represent. If one were stored, no client that speaks JSON could list the
// type.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/unstructured_test.go
// TestRequestObjectConvertibleToUnstructured.
func TestProtobufWithoutJSONForm(t *testing.T) {
	_, config := start(t, localapi.Options{})
	config.ContentType = runtime.ContentTypeProtobuf
	client := clientset(t, config)
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsBadRequest(err) ||
			!strings.HasPrefix(err.Error(), "the object cannot be represented as JSON: ") {
			t.Errorf("%s: %v, want a bad request that names JSON", what, err)
		}
	}
	revisions := client.AppsV1().ControllerRevisions("default")
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: runtime.RawExtension{Raw: []byte("{}")},
	}
	stored, err := revisions.Create(t.Context(), revision, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{"", `"`, "{", "[", "1z", "z"} {
		next := revision.DeepCopy()
		next.Name, next.Data.Raw = "b", []byte(raw)
		_, err := revisions.Create(t.Context(), next, metav1.CreateOptions{})
		refused("create with "+raw, err)
		next = stored.DeepCopy()
		next.Data.Raw = []byte(raw)
		_, err = revisions.Update(t.Context(), next, metav1.UpdateOptions{})
		refused("update with "+raw, err)
	}
	_, err = client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1, TargetPort: intstr.IntOrString{Type: 2}}}},
	}, metav1.CreateOptions{})
	refused("target port of an unknown type", err)
}
