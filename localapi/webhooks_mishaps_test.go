package localapi_test

import (
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
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
