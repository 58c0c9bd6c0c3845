package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager/rbac"
)

func ExampleNewRecorder() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	recorder := rbac.NewRecorder()
	config := rest.CopyConfig(server.RESTConfig())
	config.Wrap(recorder.Wrap)
	client := kubernetes.NewForConfigOrDie(config)
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	text, err := yaml.Marshal(recorder.ClusterRole("example").Rules)
	fmt.Print(string(text), err)
	// Output:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - configmaps
	//   verbs:
	//   - create
	// <nil>
}

func TestRequestsAreReadAsTheServerReadsThem(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         rbac.Call
	}{
		{"GET", "/api/v1/pods", rbac.Call{Resource: "pods", Verb: "list"}},
		{"GET", "/api/v1/pods?watch=true", rbac.Call{Resource: "pods", Verb: "watch"}},
		{"GET", "/api/v1/namespaces/a", rbac.Call{Resource: "namespaces", Verb: "get"}},
		{
			"PUT", "/api/v1/namespaces/a/finalize",
			rbac.Call{Resource: "namespaces", Subresource: "finalize", Verb: "update"},
		},
		{"GET", "/api/v1/namespaces/a/pods/p", rbac.Call{Resource: "pods", Namespace: "a", Verb: "get"}},
		{
			"POST", "/api/v1/namespaces/a/pods/p/eviction",
			rbac.Call{Resource: "pods", Subresource: "eviction", Namespace: "a", Verb: "create"},
		},
		{
			"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/status",
			rbac.Call{Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "a", Verb: "patch"},
		},
		{
			"DELETE", "/apis/apps/v1/namespaces/a/deployments/d",
			rbac.Call{Group: "apps", Resource: "deployments", Namespace: "a", Verb: "delete"},
		},
		{
			"DELETE", "/apis/apps/v1/namespaces/a/deployments",
			rbac.Call{Group: "apps", Resource: "deployments", Namespace: "a", Verb: "deletecollection"},
		},
	} {
		recorder := rbac.NewRecorder()
		pass := recorder.Wrap(answered{http.StatusOK})
		for _, path := range []string{c.path, "/version", "/apis", "/api/v1", "/apis/apps/v1"} {
			if _, err := pass.RoundTrip(httptest.NewRequest(c.method, path, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if got := recorder.Calls(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.method, c.path, got, c.want)
		}
	}
}

// TestWritesThatMayCreate: an apply request is also recorded as a create, and so is a PUT that was answered with 201.
func TestWritesThatMayCreate(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	maps := rbac.Call{Resource: "configmaps", Namespace: "a"}
	with := func(c rbac.Call, verb string) rbac.Call { c.Verb = verb; return c }
	status := maps
	status.Subresource = "status"
	for _, c := range []struct {
		method, path, contentType string
		code                      int
		want                      []rbac.Call
	}{
		{"PATCH", "configmaps/m", apply, 200, []rbac.Call{with(maps, "create"), with(maps, "patch")}},
		{
			"PATCH", "configmaps/m", apply + "; charset=utf-8", 403,
			[]rbac.Call{with(maps, "create"), with(maps, "patch")},
		},
		{
			"PATCH", "configmaps/m", "application/apply-patch+cbor", 201,
			[]rbac.Call{with(maps, "create"), with(maps, "patch")},
		},
		{"PATCH", "configmaps/m/status", apply, 200, []rbac.Call{with(status, "patch")}},
		{"PATCH", "configmaps/m", "application/merge-patch+json", 200, []rbac.Call{with(maps, "patch")}},
		{"PUT", "configmaps/m", "application/json", 200, []rbac.Call{with(maps, "update")}},
		{"PUT", "configmaps/m", "application/json", 201, []rbac.Call{with(maps, "create"), with(maps, "update")}},
	} {
		recorder := rbac.NewRecorder()
		req := httptest.NewRequest(c.method, "/api/v1/namespaces/a/"+c.path, nil)
		req.Header.Set("Content-Type", c.contentType)
		if _, err := recorder.Wrap(answered{c.code}).RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		if got := recorder.Calls(); !slices.Equal(got, c.want) {
			t.Errorf("%s %s as %s, answered with %d: %+v, want %+v", c.method, c.path, c.contentType, c.code, got,
				c.want)
		}
	}
}

// TestARoleIsEnough: a process that applies objects may do so again with the role that was recorded.
func TestARoleIsEnough(t *testing.T) {
	server, err := localapi.New(localapi.Options{RBAC: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	recorder := rbac.NewRecorder()
	run := func(config *rest.Config, name string) error {
		maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		_, err := maps.Apply(t.Context(), applycorev1.ConfigMap(name, "default"),
			metav1.ApplyOptions{FieldManager: "m"})
		return err
	}
	recorded := rest.CopyConfig(server.RESTConfig())
	recorded.Wrap(recorder.Wrap)
	if err := run(recorded, "a"); err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(server.RESTConfig())
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), recorder.ClusterRole("x"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "x"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "x"}},
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "x"},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := run(server.RESTConfigFor(auth.User{Name: "x"}), "b"); err != nil {
		t.Errorf("with the role that was recorded: %v", err)
	}
}

// TestImpersonation: the role of a process that acts for others lets it act for them, and for nobody else. What they do
// is allowed to them, not to the process.
func TestImpersonation(t *testing.T) {
	server, err := localapi.New(localapi.Options{RBAC: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	admin := kubernetes.NewForConfigOrDie(server.RESTConfig())
	bind := func(role *rbacv1.ClusterRole, subjects ...rbacv1.Subject) {
		t.Helper()
		if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name},
		}
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bind(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		},
	}, rbacv1.Subject{Kind: "Group", Name: "readers"})
	list := func(config *rest.Config, as rest.ImpersonationConfig) error {
		config = rest.CopyConfig(config)
		config.Impersonate = as
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err
	}
	users := []rest.ImpersonationConfig{
		{
			UserName: "ann", Groups: []string{"readers", "writers"}, UID: "1",
			Extra: map[string][]string{"example.com/Why": {"asked", "told"}},
		},
		{UserName: "system:serviceaccount:a:robot", Groups: []string{"readers"}},
	}
	recorder := rbac.NewRecorder()
	recorded := rest.CopyConfig(server.RESTConfig())
	recorded.Wrap(recorder.Wrap)
	for _, user := range users {
		if err := list(recorded, user); err != nil {
			t.Fatal(err)
		}
	}
	role := recorder.ClusterRole("x")
	bind(role, rbacv1.Subject{Kind: "User", Name: "x"})
	process := server.RESTConfigFor(auth.User{Name: "x"})
	for _, user := range users {
		if err := list(process, user); err != nil {
			t.Errorf("with the role that was recorded, for %v: %v", user, err)
		}
	}
	for _, user := range []rest.ImpersonationConfig{{}, {UserName: "bob", Groups: []string{"readers"}}} {
		if err := list(process, user); err == nil {
			t.Errorf("the role that was recorded allows too much for %+v: %v", user, role.Rules)
		}
	}
	if missing, unused := rbac.Compare(role.Rules, recorder.Calls()); len(missing)+len(unused) > 0 {
		t.Errorf("the role that was recorded lacks %v, and need not have %v", missing, unused)
	}
	robot := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"},
		ResourceNames: []string{"robot"},
	}
	if got := recorder.Role("x", "a").Rules; len(got) != 1 || !reflect.DeepEqual(got[0], robot) {
		t.Errorf("the role of namespace a: %v", got)
	}
}

// TestLeaseRoleOfPostAndApply: if any lease may be created, the rule for the known names need not allow it again.
func TestLeaseRoleOfPostAndApply(t *testing.T) {
	recorder := rbac.NewRecorder()
	pass := recorder.Wrap(answered{http.StatusOK})
	const leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
	apply := httptest.NewRequest("PATCH", leases+"/mine", nil)
	apply.Header.Set("Content-Type", "application/apply-patch+yaml")
	for _, step := range []struct {
		req  *http.Request
		want string
	}{
		{apply, "[mine]:create,patch"},
		{httptest.NewRequest("POST", leases, nil), "[]:create [mine]:patch"},
	} {
		if _, err := pass.RoundTrip(step.req); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rule := range recorder.LeaseRole("x", "a").Rules {
			got = append(got, fmt.Sprintf("%v:%s", rule.ResourceNames, strings.Join(rule.Verbs, ",")))
		}
		if text := strings.Join(got, " "); text != step.want {
			t.Errorf("after %s: %s, want %s", step.req.Method, text, step.want)
		}
	}
}

// TestManifestsIncludeGrantsThatNoCallShows: a process that grants rights or signs requests needs more than its calls
// show.
func TestManifestsIncludeGrantsThatNoCallShows(t *testing.T) {
	const grants, signs = "# The process writes roles or bindings.", "# The process approves requests for certificates"
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles"
	const certificates = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	for _, c := range []struct{ method, path, said string }{
		{"POST", "/api/v1/namespaces/a/pods", ""},
		{"GET", roles, ""},
		{"POST", roles, grants},
		{"POST", certificates, ""},
		{"GET", certificates + "/c/approval", ""},
		{"PUT", certificates + "/c/approval", signs},
		{"PATCH", certificates + "/c/status", signs},
	} {
		recorder := rbac.NewRecorder()
		if _, err := recorder.Wrap(answered{http.StatusOK}).RoundTrip(
			httptest.NewRequest(c.method, c.path, nil),
		); err != nil {
			t.Fatal(err)
		}
		text, err := recorder.Manifests("x", "a", "account")
		if err != nil || !strings.HasPrefix(string(text), c.said) ||
			strings.HasPrefix(string(text), "#") != (c.said != "") {
			t.Errorf("%v after %s %s\n%s", err, c.method, c.path, text)
		}
	}
}

type answered struct{ code int }

func (a answered) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code}, nil
}

// A Role for leases names them. A process in a single namespace gets its own Role there.
func TestRolesOfANamespace(t *testing.T) {
	recorder := rbac.NewRecorder()
	pass := recorder.Wrap(answered{http.StatusOK})
	for _, request := range []string{
		"GET /apis/coordination.k8s.io/v1/namespaces/a/leases/mine",
		"POST /apis/coordination.k8s.io/v1/namespaces/a/leases",
		"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/mine", "GET /api/v1/namespaces/a/pods",
		"GET /api/v1/namespaces/a/pods?watch=1",
		"DELETE /api/v1/namespaces/a/pods/p", "GET /api/v1/namespaces/b/pods", "GET /api/v1/nodes",
	} {
		method, path, _ := strings.Cut(request, " ")
		if _, err := pass.RoundTrip(httptest.NewRequest(method, path, nil)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := yaml.Marshal([]any{recorder.LeaseRole("x", "a").Rules, recorder.Role("x", "a").Rules})
	if err != nil {
		t.Fatal(err)
	}
	const want = `- - apiGroups:
    - coordination.k8s.io
    resources:
    - leases
    verbs:
    - create
  - apiGroups:
    - coordination.k8s.io
    resourceNames:
    - mine
    resources:
    - leases
    verbs:
    - get
    - update
- - apiGroups:
    - ""
    resources:
    - pods
    verbs:
    - delete
    - list
    - watch
`
	if string(text) != want {
		t.Errorf("rules\n%s", text)
	}
	all, err := recorder.Manifests("x", "a", "account")
	if n := strings.Count(string(all), "\n---\n"); err != nil || n != 3 || strings.Contains(string(all), "'*'") {
		t.Errorf("%v, %d objects:\n%s", err, n+1, all)
	}
}
