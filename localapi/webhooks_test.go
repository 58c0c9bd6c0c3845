package localapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
)

// hook is a webhook: it answers a request with a response, whose UID is set for it.
type hook func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse

// ServeHTTP implements [http.Handler].
func (h hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := h(review.Request)
	response.UID = review.Request.UID
	review.Request, review.Response = nil, &response
	_ = json.NewEncoder(w).Encode(review)
}

// patching accepts everything and applies a patch.
func patching(patch string) hook {
	return func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		return admissionv1.AdmissionResponse{
			Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
		}
	}
}

// mutating is a configuration with one webhook, for config maps, at the Service hooks/name.
func mutating(name string) *registrationv1.MutatingWebhookConfiguration {
	return &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name: name + ".example.com",
			ClientConfig: registrationv1.WebhookClientConfig{
				Service: &registrationv1.ServiceReference{Namespace: "hooks", Name: name},
			},
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.OperationAll},
				Rule: registrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
			SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func TestMutate(t *testing.T) {
	s := localapi.NewTest(t, mutating("a"))
	s.HandleWebhook("hooks/a", patching(`[{"op": "add", "path": "/data", "value": {"by": "a"}}]`))
	got, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Data["by"] != "a" {
		t.Fatalf("got %v", got)
	}
}

// Of a binding that names its pod in the body alone, webhooks see the type bindings, not the subresource of pods.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/cel TestPolicyAdmission.
func TestWebhooksSeeBindings(t *testing.T) {
	c := mutating("a")
	c.Webhooks[0].Rules[0].Resources = []string{"bindings", "pods/binding"}
	s := localapi.NewTest(t, c)
	var seen []string
	s.HandleWebhook("hooks/a", hook(func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		seen = append(seen, strings.Join([]string{
			string(r.Operation), r.Resource.Resource, r.SubResource, r.Kind.Kind,
			r.Namespace, r.Name,
		}, " "))
		return admissionv1.AdmissionResponse{Allowed: true}
	}))
	client := kubernetes.NewForConfigOrDie(s.RESTConfig())
	for _, name := range []string{"p", "q"} {
		createPod(t, client, newPod(name, ""))
	}
	target := corev1.ObjectReference{Kind: "Node", Name: "n"}
	if err := client.CoreV1().RESTClient().Post().Namespace("default").Resource("bindings").Body(&corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: target,
	}).Do(t.Context()).Error(); err != nil {
		t.Error(err)
	}
	if err := client.CoreV1().Pods("default").Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "q"}, Target: target,
	}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	want := []string{"CREATE bindings  Binding default p", "CREATE pods binding Binding default q"}
	if !slices.Equal(seen, want) {
		t.Errorf("webhook saw %q, want %q", seen, want)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := localapi.NewTest(t, mutating("a"))
		s.HandleWebhook("hooks/a", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		begin := time.Now()
		_, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		want := `failed calling webhook "a.example.com": failed to call webhook: Post "https://a.hooks.svc:443/` +
			`?timeout=10s": context deadline exceeded`
		if err == nil || !strings.HasSuffix(err.Error(), want) || time.Since(begin) != 10*time.Second {
			t.Errorf("after %v: %v, want %s", time.Since(begin), err, want)
		}
	})
}

// TestWebhooksUseTheAPI has a webhook read and write objects of the server that calls it.
func TestWebhooksUseTheAPI(t *testing.T) {
	s := localapi.NewTest(t, mutating("a"))
	maps := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default")
	s.HandleWebhook("hooks/a", hook(func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		if r.Name != "x" {
			return admissionv1.AdmissionResponse{Allowed: true}
		}
		// The write of another config map calls this webhook again.
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "y"}},
			metav1.CreateOptions{})
		_, missing := maps.Get(t.Context(), "x", metav1.GetOptions{})
		return admissionv1.AdmissionResponse{Allowed: err == nil && apierrors.IsNotFound(missing)}
	}))
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("list: %v, %v", list, err)
	}
	notes := s.Audit().Writes()[1].Annotations
	want := `{"configuration":"a","webhook":"a.example.com","mutated":false}`
	if notes["mutation.webhook.admission.k8s.io/round_0_index_0"] != want {
		t.Errorf("annotations: %v", notes)
	}
}

// TestWebhooksOfServices calls a webhook at the address given for its Service, with the certificate of the Service.
func TestWebhooksOfServices(t *testing.T) {
	c := mutating("a")
	var maps typedcorev1.ConfigMapInterface
	create := func() error {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
			metav1.CreateOptions{})
		return err
	}
	for _, services := range []map[string]string{
		{"hooks/a": "127.0.0.1:1"},
		{"*/a": "127.0.0.1:1", "hooks/b": "127.0.0.1:2"},
		{"*/a": "127.0.0.1:2", "hooks/a": "127.0.0.1:1"},
	} {
		s := localapi.NewTestWith(t, localapi.Options{WebhookServices: services}, c)
		maps = kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().ConfigMaps("default")
		if err := create(); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1: connect: connection refused") {
			t.Errorf("%v: %v", services, err)
		}
	}
	other := localapi.NewTest(t, c)
	maps = kubernetes.NewForConfigOrDie(other.RESTConfig()).CoreV1().ConfigMaps("default")
	if err := create(); err == nil || !strings.HasSuffix(err.Error(), `service "a" not found`) {
		t.Errorf("no address: %v", err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hooks", Name: "a"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	}
	if err := other.Seed(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if err := create(); err == nil || !strings.HasSuffix(err.Error(), `no endpoints available for service "a"`) {
		t.Errorf("no endpoints: %v", err)
	}
}

// TestValidate has several webhooks refuse a write. The client gets the error of the first, and the warnings of all.
func TestValidate(t *testing.T) {
	c := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	for _, name := range []string{"a", "b", "c"} {
		w := mutating(name).Webhooks[0]
		c.Webhooks = append(c.Webhooks, registrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, SideEffects: w.SideEffects,
			AdmissionReviewVersions: w.AdmissionReviewVersions,
		})
	}
	s := localapi.NewTest(t, c)
	for _, name := range []string{"a", "b", "c"} {
		s.HandleWebhook("hooks/"+name, hook(func(*admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
			return admissionv1.AdmissionResponse{
				Allowed: name == "a", Warnings: []string{name}, Result: &metav1.Status{Message: name},
			}
		}))
	}
	config := s.RESTConfig()
	warnings := &heard{}
	config.WarningHandler = warnings
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	if err == nil || err.Error() != `admission webhook "b.example.com" denied the request: b` {
		t.Errorf("create: %v", err)
	}
	if got := strings.Join(warnings.all, " "); got != "a b c" {
		t.Errorf("warnings: %s", got)
	}
}

// heard keeps warnings.
type heard struct{ all []string }

// HandleWarningHeader implements [rest.WarningHandler].
func (h *heard) HandleWarningHeader(_ int, _, text string) { h.all = append(h.all, text) }
