package webhook

import (
	"context"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// TestPanicsAreFailedCalls: a panic while a webhook is called does not end the process, whether the webhook is the
// first or one of the others, and the failure policy says what it means.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/validating/dispatcher.go Dispatch.
func TestPanicsAreFailedCalls(t *testing.T) {
	p := &Validating{Options: Options{Clients: &webhookclient.Clients{
		Local: func(string) http.RoundTripper { panic("out of order") },
	}}}
	for policy, want := range map[registrationv1.FailurePolicyType]string{
		registrationv1.Fail:   `failed calling webhook "a.example.com": panic: out of order`,
		registrationv1.Ignore: "",
	} {
		p.Set([]*registrationv1.ValidatingWebhookConfiguration{validating("a", policy), validating("b", policy)})
		ignored := map[string]string{}
		err := p.Validate(t.Context(), &admission.Attributes{
			Operation: admissionv1.Create, Kind: corev1.SchemeGroupVersion.WithKind("Node"),
			Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Name: "x", Object: &corev1.Node{},
			Annotate: func(key, value string) { ignored[key] = value }, Server: oneVersion{},
		})
		if want == "" && (err != nil || len(ignored) != 2) {
			t.Errorf("policy %s: %v, ignored %v", policy, err, ignored)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("policy %s: %v, want %s", policy, err, want)
		}
	}
}

// oneVersion is a server whose types have one version.
type oneVersion struct{ admission.Server }

func (oneVersion) Convert(_ context.Context, obj runtime.Object, _ schema.GroupVersionKind) (runtime.Object, error) {
	return obj, nil
}

// validating is a configuration with one webhook, for nodes.
func validating(name string, policy registrationv1.FailurePolicyType) *registrationv1.ValidatingWebhookConfiguration {
	return &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: name + ".example.com", FailurePolicy: &policy, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: registrationv1.WebhookClientConfig{URL: ptr.To("https://hooks.example.com/" + name)},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"},
				},
			}},
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		}},
	}
}
