package localapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// TestImpersonation: who may impersonate a user gets what that one may, and no more.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/impersonation.
func TestImpersonation(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	allowed := func(verb, resource, group string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource},
			ResourceNames: names,
		}
	}
	const authn = authenticationv1.GroupName
	grant(t, admin, "y", "ann", rule("list", "pods"))
	grant(t, admin, "", "x", allowed("impersonate", "users", "", "ann"), allowed("impersonate", "groups", "", "devs"),
		allowed("impersonate", "userextras/scopes", authn, "read"))
	grant(t, admin, "", "viewer", allowed("impersonate:user-info", "users", authn),
		rule("impersonate-on:user-info:list", "pods"))
	const pods = "/api/v1/namespaces/y/pods"
	expect(t, server, []asked{
		{user: "x", method: "GET", path: pods, code: 403},
		{user: "x", method: "GET", path: pods, header: "Impersonate-User: ann", code: 200},
		{user: "x", method: "GET", path: pods, header: "Impersonate-User: ann\nImpersonate-Group: devs", code: 200},
		{
			user: "x", method: "GET", path: pods, header: "Impersonate-User: ann\nImpersonate-Extra-Scopes: read",
			code: 200,
		},
		{
			user: "x", method: "GET", path: "/api/v1/pods", header: "Impersonate-User: ann", code: 403,
			message: `pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope`,
		},
		{
			user: "x", method: "GET", path: pods, header: "Impersonate-User: bob", code: 403,
			message: `pods is forbidden: User "x" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "y"`,
		},
		{user: "x", method: "GET", path: pods, header: "Impersonate-User: ann\nImpersonate-Uid: 1", code: 403},
		{
			user: "x", method: "GET", path: pods, header: "Impersonate-User: ann\nImpersonate-Extra-Scopes: write",
			code: 403,
		},
		{
			user: "x", method: "GET", path: pods, header: "Impersonate-User: ann\nImpersonate-Group: system:masters",
			code: 403,
		},
		{user: "x", method: "GET", path: pods, header: "Impersonate-User: system:serviceaccount:y:default", code: 403},
		{
			user: "x", method: "GET", path: "/apis", header: "Impersonate-User: bob", code: 403,
			message: `forbidden: User "x" cannot impersonate-on:user-info:get path "/apis"`,
		},
		{
			user: "x", method: "GET", path: pods, header: "Impersonate-Group: devs", code: 400,
			message: `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without impersonating a user name`,
		},
		{user: "viewer", method: "GET", path: pods, header: "Impersonate-User: ann", code: 200},
		{
			user: "viewer", method: "GET", path: pods + "/p", header: "Impersonate-User: ann", code: 403,
			message: `pods "p" is forbidden: User "viewer" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "y"`,
		},
		{
			user: "viewer", method: "GET", path: pods,
			header: "Impersonate-User: ann\nImpersonate-Group: system:masters", code: 403,
			message: `groups.authentication.k8s.io "system:masters" is forbidden: User "viewer" cannot impersonate:user-info resource "groups"` +
				` in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed`,
		},
		{user: "root", method: "GET", path: pods, header: "Impersonate-User: bob", code: 403},
		{
			user: "root", method: "GET", path: pods, header: "Impersonate-User: bob\nImpersonate-Group: system:masters",
			code: 200,
		},
		{user: "root", method: "GET", path: pods, header: "Impersonate-User: system:anonymous", code: 403},
	})
}

// TestImpersonatedIdentity: the server answers as to the impersonated user, whether or not there are Roles; the audit
// log names both.
func TestImpersonatedIdentity(t *testing.T) {
	for _, withRBAC := range []bool{true, false} {
		log := &audit.Log{}
		server, _ := start(t, localapi.Options{RBAC: withRBAC, Audit: log})
		for _, c := range []struct {
			as   rest.ImpersonationConfig
			want []string
		}{
			{rest.ImpersonationConfig{UserName: "joe"}, []string{"system:authenticated"}},
			{
				rest.ImpersonationConfig{
					UserName: "joe", Groups: []string{"devs"}, UID: "7",
					Extra: map[string][]string{"acme.com/Scope": {"a", "b"}},
				}, []string{"devs", "system:authenticated"},
			},
			{
				rest.ImpersonationConfig{UserName: "system:serviceaccount:y:robot"},
				[]string{"system:serviceaccounts", "system:serviceaccounts:y", "system:authenticated"},
			},
			{
				rest.ImpersonationConfig{UserName: "system:serviceaccount:y:robot", Groups: []string{"g"}},
				[]string{"g", "system:authenticated"},
			},
			{rest.ImpersonationConfig{UserName: "system:node:n1"}, []string{"system:nodes", "system:authenticated"}},
			{rest.ImpersonationConfig{UserName: "system:anonymous"}, []string{"system:unauthenticated"}},
			{
				rest.ImpersonationConfig{UserName: "joe", Groups: []string{"system:unauthenticated"}},
				[]string{"system:unauthenticated"},
			},
		} {
			log.Reset()
			config := server.RESTConfigFor(auth.Admin())
			config.Impersonate = c.as
			review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(
				t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{},
			)
			if withRBAC && slices.Contains(c.want, "system:unauthenticated") {
				continue // who is not known may not ask
			}
			if err != nil {
				t.Fatal(err)
			}
			info := review.Status.UserInfo
			if info.Username != c.as.UserName || !slices.Equal(info.Groups, c.want) || info.UID != c.as.UID ||
				len(info.Extra) != len(c.as.Extra) {
				t.Errorf("as %+v: %+v, want the groups %q", c.as, info, c.want)
			}
			if c.as.Extra != nil && !slices.Equal(info.Extra["acme.com/scope"], []string{"a", "b"}) {
				t.Errorf("extra: %+v", info.Extra)
			}
			entries := log.Entries(nil)
			if len(entries) != 1 || entries[0].User != "system:admin" || entries[0].ImpersonatedUser != c.as.UserName {
				t.Errorf("audit: %+v", entries)
			}
		}
	}
}

// TestImpersonationHeadersInAnyCase: a client inside the process need not have brought the names of its headers into
// their form.
func TestImpersonationHeadersInAnyCase(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true})
	req := newRequest(t, t.Context(), config, request{path: "/api/v1/pods"})
	name := strings.ToLower("Impersonate-User")
	req.Header[name] = []string{"joe"}
	response, err := server.RESTConfig().Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", response.StatusCode)
	}
	if len(req.Header[name]) != 1 {
		t.Error("the client's header was changed")
	}
}
