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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/cel"
)

// admissionResource is a resource of admissionregistration.k8s.io/v1.
func admissionResource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: plural}
}

// enforce creates a validating policy, for config maps unless rest matches something else, and a binding. rest is the
// rest of the policy's spec.
func (w *world) enforce(name, rest, actions string) {
	w.t.Helper()
	w.declare("Validating", name, rest, "validationActions: "+actions)
}

// mutate creates a mutating policy for config maps, and a binding. rest is the rest of the policy's spec.
func (w *world) mutate(name, rest string) {
	w.t.Helper()
	w.declare("Mutating", name, rest, "")
}

func (w *world) declare(kind, name, rest, binding string) {
	w.t.Helper()
	if !strings.Contains(rest, "matchConstraints") {
		rest += `, matchConstraints: {resourceRules: [{
			apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}`
	}
	for plural, text := range map[string]string{
		"admissionpolicies": fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1,
			kind: %sAdmissionPolicy, metadata: {name: %s}, spec: {%s}}`, kind, name, rest),
		"admissionpolicybindings": fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1,
			kind: %sAdmissionPolicyBinding, metadata: {name: %s}, spec: {policyName: %[2]s, %s}}`, kind, name, binding),
	} {
		text = strings.ReplaceAll(text, "\t", " ")
		gvr := admissionResource(strings.ToLower(kind) + plural)
		if _, err := w.Resource(gvr).Create(w.t.Context(), w.read(text), metav1.CreateOptions{}); err != nil {
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

// TestPolicyOnConfiguration: policies judge the configurations of webhooks, but no policy. A policy that denies every
// write can be removed.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/generic/plugin.go Dispatch.
func TestPolicyOnConfiguration(t *testing.T) {
	w := newWorld(t, localapi.Options{CEL: cel.New()})
	w.enforce("deny", `validations: [{expression: "false"}], matchConstraints: {resourceRules: [{apiGroups: ["*"],
		apiVersions: ["*"], operations: ["*"], resources: ["*"]}]}`, "[Deny]")
	hooks := admissionResource("mutatingwebhookconfigurations")
	policies := admissionResource("validatingadmissionpolicies")
	hook := w.read("{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, " +
		"metadata: {name: h}}")
	if _, err := w.Resource(hooks).Create(t.Context(), hook, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("create a configuration: %v, want Invalid", err)
	}
	if err := w.Resource(policies).Delete(t.Context(), "deny", metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete the policy: %v", err)
	}
	if _, err := w.Resource(hooks).Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Errorf("create a configuration without a policy: %v", err)
	}
}

// TestMutatingPolicy: a policy changes at once what it is bound to change, within the bubble's goroutines. It is called
// again after a webhook, if it wants that, and validating policies judge what has become of the object.
func TestMutatingPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, localapi.Options{CEL: cel.New()})
		w.mutate("longer", `reinvocationPolicy: IfNeeded, mutations: [{patchType: JSONPatch, jsonPatch: {expression:
			"[JSONPatch{op: 'replace', path: '/data/v', value: object.data.v + 'a'}]"}}]`)
		w.mutate("note", `reinvocationPolicy: Never, matchConditions: [{name: short, expression:
			"object.data.v.size() < 4"}], mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression:
			"Object{data: {'note': object.data.v}}"}}]`)
		w.enforce("short", `validations: [{expression: "object.data.v.size() < 4"}]`, "[Deny]")
		get := func(name string) map[string]string {
			maps := kubernetes.NewForConfigOrDie(w.RESTConfig()).CoreV1().ConfigMaps("default")
			cm, err := maps.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return cm.Data
		}
		if err := w.put("a", "x"); err != nil {
			t.Fatal(err)
		}
		if got := get("a"); got["v"] != "xaa" || got["note"] != "xa" {
			t.Errorf("data: %v, want v xaa and note xa", got)
		}
		if err := w.put("b", "xx"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "'short'") {
			t.Errorf("put: %v", err)
		}
		w.mutate("wrong", `reinvocationPolicy: Never, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {
			expression: "Object{data: {'n': object.data.nosuch}}"}}]`)
		err := w.put("c", "x")
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(),
			"policy 'wrong' with binding 'wrong' denied request: ") || !strings.Contains(err.Error(), "no such key") {
			t.Errorf("put: %v", err)
		}
	})
}

// TestPolicyWithoutPackage: a server without the package stores policies, says so, and does not enforce them.
func TestPolicyWithoutPackage(t *testing.T) {
	w := newWorld(t, localapi.Options{})
	w.enforce("none", `validations: [{expression: "false"}]`, "[Deny]")
	w.mutate("none", `reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: {expression: "no CEL"}}]`)
	got := w.warnings.take()
	if len(got) != 2 || !strings.Contains(got[0], "not enforced") || !strings.Contains(got[1], "not enforced") {
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

// TestPolicyParameters: a user cannot have a policy read parameters that the user may not read.
func TestPolicyParameters(t *testing.T) {
	w := newWorld(t, localapi.Options{CEL: cel.New(), RBAC: true})
	ctx, roles := t.Context(), kubernetes.NewForConfigOrDie(w.RESTConfig()).RbacV1()
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"*"}},
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "guard"}, Rules: rules}
	if _, err := roles.ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "guard"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "guard"},
	}
	if _, err := roles.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(w.RESTConfigFor(auth.User{Name: "guard"}))
	if err != nil {
		t.Fatal(err)
	}
	for kind, allowed := range map[string]bool{"ConfigMap": true, "Secret": false} {
		policy := w.read(strings.ReplaceAll(fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1,
			kind: MutatingAdmissionPolicy, metadata: {name: %s}, spec: {paramKind: {apiVersion: v1, kind: %s},
			matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE],
			resources: [configmaps]}]}, reinvocationPolicy: Never, mutations: [{patchType: ApplyConfiguration,
			applyConfiguration: {expression: "Object{}"}}]}}`, strings.ToLower(kind), kind), "\t", " "))
		_, err := client.Resource(admissionResource("mutatingadmissionpolicies")).Create(ctx, policy,
			metav1.CreateOptions{})
		refused := apierrors.IsInvalid(err) && strings.Contains(err.Error(), `must have "get" permission`)
		if allowed && err != nil || !allowed && !refused {
			t.Errorf("a policy with parameters of kind %s: %v, want allowed %v", kind, err, allowed)
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
