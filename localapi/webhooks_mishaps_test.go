package localapi_test

import (
	"fmt"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
)

// TestBrokenWebhook: a configuration that cannot be used, because the store was used by a server that has CEL, fails
// the writes that it is for, and no others.
func TestBrokenWebhook(t *testing.T) {
	broken := mutating("a")
	broken.Webhooks[0].MatchConditions = []registrationv1.MatchCondition{{Name: "all", Expression: "true"}}
	s := localapi.NewTest(t, broken)
	_, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().Secrets("default").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("a write that the webhook is not for: %v", err)
	}
	_, err = kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "CEL") {
		t.Errorf("a write that the webhook is for: %v", err)
	}
}

// TestWebhookCopiesAreBounded: the patch of a webhook has the bound of a client's patch.
func TestWebhookCopiesAreBounded(t *testing.T) {
	s := localapi.NewTest(t, mutating("a"))
	var copies []string
	for i := range 10 {
		copies = append(copies, fmt.Sprintf(`{"op":"copy","from":"/metadata","path":"/metadata/c%d"}`, i))
	}
	s.HandleWebhook("hooks/a", patching("["+strings.Join(copies, ",")+"]"))
	_, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "x", Annotations: map[string]string{"a": strings.Repeat("x", 30_000)},
		}}, metav1.CreateOptions{})
	const want = "exceeding the limit 3145728"
	if !apierrors.IsInternalError(err) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
