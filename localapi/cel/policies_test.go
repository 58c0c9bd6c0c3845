package cel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/cel"
)

// admissionResource is a resource of admissionregistration.k8s.io/v1.
func admissionResource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}
}

// enforce creates a policy for config maps, and a binding. rest is the rest of the policy's spec.
func (w *world) enforce(name, rest, actions string) {
	w.t.Helper()
	for plural, text := range map[string]string{
		"validatingadmissionpolicies": fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1,
			kind: ValidatingAdmissionPolicy, metadata: {name: %s}, spec: {matchConstraints: {resourceRules: [{
			apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, %s}}`, name, rest),
		"validatingadmissionpolicybindings": fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1,
			kind: ValidatingAdmissionPolicyBinding, metadata: {name: %s}, spec: {policyName: %[1]s,
			validationActions: %s}}`, name, actions),
	} {
		text = strings.ReplaceAll(text, "\t", " ")
		if _, err := w.Resource(admissionResource(plural)).Create(w.t.Context(), w.read(text),
			metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// put creates a config map with one value.
func (w *world) put(name, value string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": value}}
	maps := kubernetes.NewForConfigOrDie(w.RESTConfig()).CoreV1().ConfigMaps("default")
	_, err := maps.Create(context.Background(), cm, metav1.CreateOptions{})
	return err
}

// TestPolicy: a policy denies at once what it is bound to deny, within the bubble's goroutines, and notes what it
// audits.
func TestPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, localapi.Options{CEL: cel.New()})
		w.enforce("short", `validations: [{expression: "object.data.v.size() < 3", message: too long}]`, "[Deny]")
		w.enforce("lower", `validations: [{expression: "object.data.v.matches('^[a-z]*$')"}],
			auditAnnotations: [{key: value, valueExpression: "string(object.data.v)"}]`, "[Audit]")
		if err := w.put("a", "xy"); err != nil {
			t.Error(err)
		}
		if err := w.put("b", "xyz"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(),
			"ValidatingAdmissionPolicy 'short' with binding 'short' denied request: too long") {
			t.Errorf("put: %v", err)
		}
		if err := w.put("c", "X"); err != nil {
			t.Error(err)
		}
		all := w.Requests()
		notes := all[len(all)-1].Annotations
		if notes["lower/value"] != "X" ||
			!strings.Contains(notes["validation.policy.admission.k8s.io/validation_failure"], `"policy":"lower"`) {
			t.Errorf("annotations: %v", notes)
		}
	})
}

// TestPolicyWithoutPackage: a server without the package stores policies, says so, and does not enforce them.
func TestPolicyWithoutPackage(t *testing.T) {
	w := newWorld(t, localapi.Options{})
	w.enforce("none", `validations: [{expression: "false"}]`, "[Deny]")
	if got := w.warnings.take(); len(got) != 1 || !strings.Contains(got[0], "not enforced") {
		t.Errorf("warnings: %q", got)
	}
	if err := w.put("a", "x"); err != nil {
		t.Error(err)
	}
}

// TestPolicyAuthorizer: the variable authorizer asks the server's roles about the user of the request.
func TestPolicyAuthorizer(t *testing.T) {
	w := newWorld(t, localapi.Options{CEL: cel.New(), RBAC: true})
	w.enforce("trusted", `validations: [{expression: "authorizer.group('').resource('secrets').namespace('default')`+
		`.check('get').allowed()"}]`, "[Deny]")
	ctx, roles := t.Context(), kubernetes.NewForConfigOrDie(w.RESTConfig()).RbacV1()
	for user, resources := range map[string][]string{"one": {"configmaps"}, "two": {"configmaps", "secrets"}} {
		role := &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: resources}},
		}
		if _, err := roles.Roles("default").Create(ctx, role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}
		if _, err := roles.RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for user, allowed := range map[string]bool{"one": false, "two": true} {
		client, err := kubernetes.NewForConfig(w.RESTConfigFor(auth.User{Name: user}))
		if err != nil {
			t.Fatal(err)
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: user}}
		_, err = client.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
		if (err == nil) != allowed {
			t.Errorf("user %s: %v, want allowed %v", user, err, allowed)
		}
	}
}

// TestMatchConditions: a webhook is called only for writes that its conditions select.
func TestMatchConditions(t *testing.T) {
	w := newWorld(t, localapi.Options{CEL: cel.New()})
	var calls atomic.Int64
	w.HandleWebhook("https://hook.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: false}
		if err := json.NewEncoder(rw).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	hook := w.read(strings.ReplaceAll(`{apiVersion: admissionregistration.k8s.io/v1,
		kind: ValidatingWebhookConfiguration, metadata: {name: h}, webhooks: [{name: h.example.com, clientConfig: {url: "https://hook.example.com/"},
		sideEffects: None, admissionReviewVersions: [v1], rules: [{apiGroups: [""], apiVersions: [v1],
		operations: ["*"], resources: [configmaps]}], matchConditions: [{name: a, expression: "object.data.v == 'x'"},
		{name: b, expression: "request.userInfo.username != ''"}]}]}`, "\t", " "))
	if _, err := w.Resource(admissionResource("validatingwebhookconfigurations")).Create(t.Context(), hook,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.put("a", "y"); err != nil || calls.Load() != 0 {
		t.Errorf("a write that is not selected: %v, %d calls", err, calls.Load())
	}
	if err := w.put("b", "x"); err == nil || calls.Load() != 1 {
		t.Errorf("a write that is selected: %v, %d calls", err, calls.Load())
	}
}

// FuzzExpression: whatever an expression is, the server refuses the definition, or evaluates it within the limits.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"self.a > 1", "self.s.matches('(a+)+$')", "self.l.all(x, self.l.all(y, x == y))",
		"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, " +
			"[1,2,3,4,5,6,7,8,9].all(e, [1,2,3,4,5,6,7,8,9].all(g, a+b+c+d+e+g > 0))))))",
		"self.s.replace('', self.s).replace('', self.s).size() > 0", "((((((((((self.a))))))))))",
		"\x00", "self.a / 0 == 1",
		"'%s%s%s'.format([self.s, self.s, self.s]).size() > 3",
		"cel.bind(x, self.s + self.s, x + x + x + x).size() > 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rule string) {
		w := newWorld(t, localapi.Options{CEL: cel.New(), NoKubernetesService: true})
		quoted, err := json.Marshal(rule)
		if err != nil {
			t.Skip()
		}
		err = w.define("{type: object, x-kubernetes-validations: [{rule: " + string(quoted) + ", message: m}], " +
			"properties: {a: {type: integer}, s: {type: string, maxLength: 100}, " +
			"l: {type: array, maxItems: 100, items: {type: integer}}}}")
		if apierrors.IsInvalid(err) {
			return
		}
		if err != nil && !apierrors.IsBadRequest(err) {
			t.Fatal(err)
		}
		err = w.create("room", "{a: 1, s: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab, l: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}")
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}
