package localapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// asked is a request and what becomes of it: the message of a refusal with this code, or a code alone.
type asked struct {
	user, method, path, body, header string
	code                             int
	message                          string
}

// expect sends requests as their users, one after the other.
func expect(t *testing.T, server *localapi.Server, all []asked) {
	t.Helper()
	for _, a := range all {
		r := request{method: a.method, path: a.path, body: a.body, contentType: "application/json"}
		if a.method == "APPLY" {
			r.method, r.contentType = http.MethodPatch, "application/apply-patch+yaml"
			r.path += "?fieldManager=m"
		} else if a.method == http.MethodPatch {
			r.contentType = "application/merge-patch+json"
		}
		u := auth.User{Name: a.user}
		if a.user == "root" {
			u = auth.Admin()
		}
		config := server.RESTConfigFor(u)
		req := newRequest(t, t.Context(), config, r)
		for line := range strings.SplitSeq(a.header, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				req.Header.Add(name, value)
			}
		}
		response, err := config.Transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		message := ""
		if a.message != "" {
			message = statusOf(t, string(body)).Message
		}
		if response.StatusCode != a.code || message != a.message {
			t.Errorf("%s %s %s %q: %d %s\nwant %d %s", a.user, a.method, a.path, a.header, response.StatusCode, body,
				a.code, a.message)
		}
	}
}

// TestWhoMakesAnObjectMayCreateIt: a PUT or an apply that makes an object needs create, by the object's name.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/update.go withAuthorization.
func TestWhoMakesAnObjectMayCreateIt(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	grant(t, admin, "y", "x", rule("update,patch,get", "endpoints,configmaps"),
		rule("create", "endpoints,configmaps", "mine"))
	const maps, endpoints = "/api/v1/namespaces/y/configmaps/", "/api/v1/namespaces/y/endpoints/"
	cm := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
	}
	ep := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":%q}}`, name)
	}
	const noCreate = `%s "other" is forbidden: User "x" cannot create resource "%[1]s" in API group "" in the namespace "y"`
	expect(t, server, []asked{
		{
			user: "x", method: "APPLY", path: maps + "other", body: cm("other"), code: 403,
			message: fmt.Sprintf(noCreate, "configmaps"),
		},
		{
			user: "x", method: "PUT", path: endpoints + "other", body: ep("other"), code: 403,
			message: fmt.Sprintf(noCreate, "endpoints"),
		},
		{
			user: "x", method: "PUT", path: endpoints + "other?dryRun=All", body: ep("other"), code: 403,
			message: fmt.Sprintf(noCreate, "endpoints"),
		},
		{user: "root", method: "GET", path: maps + "other", code: 404},
		{user: "root", method: "GET", path: endpoints + "other", code: 404},
		{user: "x", method: "APPLY", path: maps + "mine", body: cm("mine"), code: 201},
		{user: "x", method: "PUT", path: endpoints + "mine", body: ep("mine"), code: 201},
		{user: "root", method: "APPLY", path: maps + "other", body: cm("other"), code: 201},
		{user: "root", method: "PUT", path: endpoints + "other", body: ep("other"), code: 201},
		{user: "x", method: "APPLY", path: maps + "other", body: cm("other"), code: 200},
		{user: "x", method: "PUT", path: endpoints + "other", body: ep("other"), code: 200},
		// What is no object at all is told so first.
		{user: "x", method: "APPLY", path: maps + "no_name", body: cm("no_name"), code: 422},
		{user: "x", method: "PUT", path: maps + "third", body: cm("third"), code: 404},
		{user: "x", method: "POST", path: strings.TrimSuffix(maps, "/"), body: cm("third"), code: 403},
	})
}

// TestConnectingToAPodNeedsCreate: a connection to a container by GET, which WebSockets need, is as much as one by
// POST.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/subresource_auth_test.go.
func TestConnectingToAPodNeedsCreate(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	grant(t, admin, "y", "reader", rule("get", "pods/exec,pods/attach,pods/portforward,pods/proxy"))
	grant(t, admin, "y", "runner", rule("get,create", "pods/exec,pods/attach,pods/portforward"))
	const pod = "/api/v1/namespaces/y/pods/none/"
	var all []asked
	for _, what := range []string{"exec?command=ls", "attach", "portforward"} {
		all = append(all,
			asked{
				user: "reader", method: "GET", path: pod + what, code: 403,
				message: `pods "none" is forbidden: `,
			},
			asked{user: "runner", method: "GET", path: pod + what, code: 404},
			asked{user: "root", method: "GET", path: pod + what, code: 404})
	}
	expect(t, server, append(all, asked{user: "reader", method: "GET", path: pod + "proxy", code: 404}))
}

// TestNobodyGrantsMoreThanTheyHave: the rules of a role must be its author's, and those of a role that is bound the
// binder's, but for who may escalate, or bind.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac.
func TestNobodyGrantsMoreThanTheyHave(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	roles := rbacv1.PolicyRule{Verbs: writeVerbs, APIGroups: []string{rbacv1.GroupName}, Resources: []string{
		"roles", "rolebindings", "clusterroles", "clusterrolebindings",
	}}
	special := func(verb, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: []string{verb}, APIGroups: []string{rbacv1.GroupName},
			Resources: []string{resource}, ResourceNames: names,
		}
	}
	grant(t, admin, "", "x", roles, rule("get,list", "pods"), rule("get", "configmaps", "one"), rule("*", "*/scale"))
	grant(t, admin, "", "escalator", roles, special("escalate", "clusterroles"))
	grant(t, admin, "", "binder", roles, special("bind", "clusterroles", "edit"))
	grant(t, admin, "", "lost", roles)
	lost := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "to-gone"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gone"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "lost"}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), lost, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	grant(t, admin, "", "all", roles,
		rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	aggregated := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "sum"},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}},
		},
	}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), aggregated, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().Roles("y").Create(t.Context(),
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Rules: []rbacv1.PolicyRule{rule("*", "secrets")}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	const api = "/apis/rbac.authorization.k8s.io/v1/"
	role := func(kind, name, rules string) string {
		return fmt.Sprintf(
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q},"rules":[%s]}`, kind, name,
			rules,
		)
	}
	binding := func(kind, name, refKind, ref string) string {
		return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q},"subjects":[{"kind":"User","name":"x"}],`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q}}`, kind, name, refKind, ref)
	}
	const (
		pods    = `{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}`
		deletes = `{"apiGroups":[""],"resources":["pods","secrets"],"verbs":["delete","get"]}`
		named   = `{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["one"],"verbs":["get"]}`
		scale   = `{"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["patch"]}`
		others  = `{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["one","two"],"verbs":["get"]}`
		urls    = `{"nonResourceURLs":["/metrics"],"verbs":["get"]}`
		missing = ` is forbidden: user "x" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` + "\n"
	)
	expect(t, server, []asked{
		{
			user: "x", method: "POST", path: api + "namespaces/y/roles",
			body: role("Role", "own", pods+","+named+","+scale), code: 201,
		},
		{
			user: "x", method: "POST", path: api + "namespaces/y/roles", body: role("Role", "a", deletes), code: 403,
			message: `roles.rbac.authorization.k8s.io "a"` + missing +
				`{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}` + "\n" +
				`{APIGroups:[""], Resources:["secrets"], Verbs:["delete" "get"]}`,
		},
		{
			user: "x", method: "PUT", path: api + "namespaces/y/roles/a", body: role("Role", "a", others), code: 403,
			message: `roles.rbac.authorization.k8s.io "a"` + missing +
				`{APIGroups:[""], Resources:["configmaps"], ResourceNames:["two"], Verbs:["get"]}`,
		},
		{
			user: "x", method: "APPLY", path: api + "clusterroles/a", body: role("ClusterRole", "a", urls), code: 403,
			message: `clusterroles.rbac.authorization.k8s.io "a"` + missing +
				`{NonResourceURLs:["/metrics"], Verbs:["get"]}`,
		},
		{
			user: "x", method: "PATCH", path: api + "clusterroles/x",
			body: `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, code: 403,
			message: `clusterroles.rbac.authorization.k8s.io "x"` + missing +
				`{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`,
		},
		{user: "x", method: "POST", path: api + "namespaces/gone/roles", body: role("Role", "a", deletes), code: 404},
		// A binding to what the binder has not.
		{
			user: "x", method: "POST", path: api + "clusterrolebindings",
			body: binding("ClusterRoleBinding", "a", "ClusterRole", "cluster-admin"), code: 403,
			message: `clusterrolebindings.rbac.authorization.k8s.io "a"` + missing +
				`{APIGroups:["*"], Resources:["*"], Verbs:["*"]}` + "\n" +
				`{NonResourceURLs:["*"], Verbs:["*"]}`,
		},
		{
			user: "x", method: "POST", path: api + "namespaces/y/rolebindings",
			body: binding("RoleBinding", "a", "Role", "big"), code: 403,
			message: `rolebindings.rbac.authorization.k8s.io "a"` + missing +
				`{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}` + "\n" +
				`{APIGroups:["apps"], Resources:["secrets"], Verbs:["*"]}`,
		},
		{
			user: "x", method: "POST", path: api + "namespaces/y/rolebindings",
			body: binding("RoleBinding", "a", "Role", "gone"), code: 404,
			// it is the request's resource that is named
			message: `rolebindings.rbac.authorization.k8s.io "gone" not found`,
		},
		{
			user: "lost", method: "POST", path: api + "namespaces/y/roles", body: role("Role", "a", urls), code: 403,
			message: strings.Replace(`roles.rbac.authorization.k8s.io "a"`+missing, `"x"`, `"lost"`, 1) +
				`{NonResourceURLs:["/metrics"], Verbs:["get"]}` +
				`; resolution errors: [roles.rbac.authorization.k8s.io "gone" not found]`,
		},
		{
			user: "x", method: "POST", path: api + "namespaces/y/rolebindings",
			body: binding("RoleBinding", "own", "Role", "own"), code: 201,
		},
		// Those who may.
		{
			user: "escalator", method: "POST", path: api + "clusterroles", body: role("ClusterRole", "a", deletes),
			code: 201,
		},
		{
			user: "escalator", method: "POST", path: api + "namespaces/y/roles", body: role("Role", "b", deletes),
			code: 403,
		},
		{
			user: "binder", method: "POST", path: api + "namespaces/y/rolebindings",
			body: binding("RoleBinding", "b", "ClusterRole", "edit"), code: 201,
		},
		{
			user: "binder", method: "POST", path: api + "clusterrolebindings",
			body: binding("ClusterRoleBinding", "b", "ClusterRole", "admin"), code: 403,
		},
		{
			user: "root", method: "POST", path: api + "clusterrolebindings",
			body: binding("ClusterRoleBinding", "c", "ClusterRole", "gone"), code: 201,
		},
		// An aggregated role gathers what may come: only who has everything may touch it.
		{
			user: "x", method: "PATCH", path: api + "clusterroles/sum", body: `{"metadata":{"labels":{"c":"d"}}}`,
			code:    403,
			message: `clusterroles.rbac.authorization.k8s.io "sum" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
		},
		{user: "x", method: "PATCH", path: api + "clusterroles/sum", body: `{"aggregationRule":null}`, code: 403},
		{
			user: "all", method: "PATCH", path: api + "clusterroles/sum", body: `{"metadata":{"labels":{"c":"d"}}}`,
			code: 200,
		},
		{
			user: "escalator", method: "PATCH", path: api + "clusterroles/sum", body: `{"metadata":{"labels":{"c":"e"}}}`,
			code: 200,
		},
		// What changes no more than a garbage collector has to needs no rights to grant.
		{
			user: "x", method: "PATCH", path: api + "clusterroles/a", body: `{"metadata":{"finalizers":["a/b"]}}`,
			code: 200,
		},
		{
			user: "x", method: "PATCH", path: api + "clusterrolebindings/c", body: `{"metadata":{"finalizers":["a/b"]}}`,
			code: 200,
		},
		{
			user: "x", method: "PATCH", path: api + "clusterroles/a", body: `{"metadata":{"labels":{"a":"b"}}}`,
			code: 403,
		},
		{user: "x", method: "DELETE", path: api + "clusterroles/cluster-admin", code: 200},
	})
}

// TestWhoMaySign: who approves a request for a certificate, or issues it, needs a verb for its signer; nobody may ask
// for one that makes them a member of system:masters.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/certificates.
func TestWhoMaySign(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true})
	admin := clientset(t, config)
	of := func(verbs []string, resources []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: verbs, APIGroups: []string{certificatesv1.GroupName}, Resources: resources,
			ResourceNames: names,
		}
	}
	all := of([]string{"*"},
		[]string{
			"certificatesigningrequests", "certificatesigningrequests/approval",
			"certificatesigningrequests/status",
		})
	signers := []string{"signers"}
	grant(t, admin, "", "clerk", all)
	grant(t, admin, "", "approver", all, of([]string{"approve"}, signers, "example.com/a"))
	grant(t, admin, "", "domain", all, of([]string{"approve", "sign"}, signers, "example.com/*"))
	ask := func(name, signer string, request []byte) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: request, SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			},
		}
	}
	for _, name := range []string{"a", "b"} {
		_, err := admin.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
			ask(name, "example.com/"+name, requestPEM(t)), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	const root = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	condition := func(kind string) string {
		return fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]}}`, kind)
	}
	noMasters, err := json.Marshal(
		ask("new", certificatesv1.KubeAPIServerClientSignerName, requestPEM(t, auth.Masters)),
	)
	if err != nil {
		t.Fatal(err)
	}
	const refused = `certificatesigningrequests.certificates.k8s.io %q is forbidden: user not permitted to %s requests with signerName %q`
	expect(t, server, []asked{
		{
			user: "clerk", method: "PATCH", path: root + "/a/approval", body: condition("Approved"), code: 403,
			message: fmt.Sprintf(refused, "a", "approve", "example.com/a"),
		},
		{
			user: "approver", method: "PATCH", path: root + "/b/approval?dryRun=All", body: condition("Approved"),
			code: 403,
		},
		{
			user: "approver", method: "PATCH", path: root + "/a/approval?dryRun=All", body: condition("Approved"),
			code: 200,
		},
		{user: "domain", method: "PATCH", path: root + "/a/approval", body: condition("Approved"), code: 200},
		{user: "root", method: "PATCH", path: root + "/b/approval", body: condition("Denied"), code: 200},
		{
			// it would take back the approval
			user: "approver", method: "PATCH", path: root + "/a/status", body: condition("Failed"), code: 422,
		},
		{
			user: "approver", method: "PATCH", path: root + "/b/status",
			body: `{"status":{"conditions":[{"type":"Denied","status":"True"},{"type":"Failed","status":"True"}]}}`,
			code: 403, message: fmt.Sprintf(refused, "b", "sign", "example.com/b"),
		},
		{
			user: "clerk", method: "PATCH", path: root + "/b/status", body: `{"metadata":{"labels":{"a":"b"}}}`,
			code: 200,
		},
		{
			user: "domain", method: "PATCH", path: root + "/b/status",
			body: `{"status":{"conditions":[{"type":"Denied","status":"True"},{"type":"Failed","status":"True"}]}}`,
			code: 200,
		},
		{
			user: "root", method: "POST", path: root, body: string(noMasters), code: 403,
			message: `certificatesigningrequests.certificates.k8s.io "new" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`,
		},
	})
}

// TestDeletingWhatCannotBeReadNeedsAVerb: it is another right than to delete, and there is nothing here that cannot
// be read.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/delete.go authorizeUnsafeDelete.
func TestDeletingWhatCannotBeReadNeedsAVerb(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	mustCreate(t, admin.CoreV1().ConfigMaps("y"), configMap("a"))
	grant(t, admin, "y", "x", rule("delete,deletecollection", "configmaps"))
	const maps, unsafe = "/api/v1/namespaces/y/configmaps", "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
	expect(t, server, []asked{
		{
			user: "x", method: "DELETE", path: maps + "/a" + unsafe, code: 403,
			message: `configmaps "a" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: `,
		},
		{
			user: "root", method: "DELETE", path: maps + "/a" + unsafe, code: 409,
			message: `Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/y/a, ResourceVersion: 0, ` +
				`AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage`,
		},
		{user: "root", method: "DELETE", path: maps + "/none" + unsafe, code: 404},
		{user: "root", method: "DELETE", path: maps + unsafe, code: 422},
		{user: "x", method: "GET", path: maps + "/a", code: 403},
		{user: "root", method: "GET", path: maps + "/a", code: 200},
	})
}

var writeVerbs = []string{"get", "create", "update", "patch", "delete"}

// TestRequestsAreAuthorizedByWhatTheyDo: no form of a request gets around a rule that is narrower than it.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/request/requestinfo.go.
func TestRequestsAreAuthorizedByWhatTheyDo(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	grant(t, admin, "y", "x", rule("create,deletecollection,list,watch,get", "configmaps", "one"),
		rule("create", "pods"))
	for _, name := range []string{"one", "two"} {
		if _, err := admin.CoreV1().ConfigMaps("y").Create(t.Context(), configMap(name),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grant(t, admin, "y", "lord",
		rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	const maps, only = "/api/v1/namespaces/y/configmaps", "?fieldSelector=metadata.name%3Done"
	const three = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"three"}}`
	expect(t, server, []asked{
		{
			user: "x", method: "POST", path: maps + only, body: three, code: 403,
			message: `configmaps is forbidden: User "x" cannot create resource "configmaps" in API group "" in the namespace "y"`,
		},
		{
			user: "x", method: "DELETE", path: maps + only, code: 403,
			message: `configmaps is forbidden: User "x" cannot deletecollection resource "configmaps" in API group "" in the namespace "y"`,
		},
		{user: "x", method: "GET", path: maps, code: 403},
		{user: "x", method: "GET", path: maps + only, code: 200},
		{user: "x", method: "GET", path: maps + only + "&watch=1&timeoutSeconds=1", code: 200},
		{user: "x", method: "GET", path: maps + "?fieldSelector=metadata.name%21%3Done", code: 403},
		{user: "x", method: "GET", path: maps + only + "&limit=x", code: 403},
		{user: "x", method: "GET", path: maps + "/two" + only, code: 403},
		{user: "x", method: "GET", path: "/api/v1/watch/namespaces/y/configmaps/one?timeoutSeconds=1", code: 200},
		{user: "x", method: "GET", path: "/api/v1/watch/namespaces/y/configmaps/two?timeoutSeconds=1", code: 403},
		{user: "x", method: "GET", path: "/api/v1/watch/namespaces/y/configmaps" + only, code: 403},
		{
			user: "x", method: "DELETE", path: "/api/v1/watch/namespaces/y/configmaps/two", code: 403,
			message: `configmaps "two" is forbidden: User "x" cannot watch resource "configmaps" in API group "" in the namespace "y"`,
		},
		{
			user: "x", method: "POST", path: "/api/v1/namespaces/y/pods/p/eviction", body: "{}", code: 403,
			message: `pods "p" is forbidden: User "x" cannot create resource "pods/eviction" in API group "" in the namespace "y"`,
		},
		{
			user: "x", method: "GET", path: "/api/v1/namespaces/y/pods/p/log/more", code: 403,
			message: `pods "p" is forbidden: User "x" cannot get resource "pods/log" in API group "" in the namespace "y"`,
		},
		{
			user: "x", method: "GET", path: "/api/v1/proxy/namespaces/y/pods/p", code: 403,
			message: `pods "p" is forbidden: User "x" cannot proxy resource "pods" in API group "" in the namespace "y"`,
		},
		{
			user: "x", method: "OPTIONS", path: maps + "/one", code: 403,
			message: `configmaps "one" is forbidden: User "x" cannot  resource "configmaps" in API group "" in the namespace "y"`,
		},
		{user: "x", method: "HEAD", path: maps + "/two", code: 403},
		{user: "x", method: "HEAD", path: "/apis", code: 403},
		{user: "x", method: "GET", path: "/APIS", code: 403},
		{user: "x", method: "GET", path: "/api/v1/namespaces/y%2Fconfigmaps/two", code: 403},
		{user: "x", method: "GET", path: "/api/v1/namespaces//configmaps", code: 403},
		{user: "x", method: "GET", path: maps + "/two/", code: 403},
		{user: "x", method: "GET", path: "/api/v1/watch", code: 500},
		// A namespace leads to nothing beyond it.
		{user: "lord", method: "GET", path: "/api/v1/namespaces/y/nodes", code: 404},
		{user: "lord", method: "GET", path: "/api/v1/namespaces/y/nodes/n/status", code: 404},
		{user: "lord", method: "GET", path: "/api/v1/watch/namespaces/y/nodes", code: 404},
		{
			user: "lord", method: "GET", path: "/apis/rbac.authorization.k8s.io/v1/namespaces/y/clusterroles/view",
			code: 404,
		},
		{
			user: "lord", method: "DELETE", path: "/apis/rbac.authorization.k8s.io/v1/namespaces/y/clusterroles/view",
			code: 404,
		},
		{
			user: "lord", method: "POST", path: "/apis/rbac.authorization.k8s.io/v1/namespaces/y/clusterrolebindings",
			code: 404,
			body: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"mine"},"subjects":[{"kind":"User","name":"lord"}],` +
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`,
		},
		{
			user: "lord", method: "POST", path: "/apis/authorization.k8s.io/v1/namespaces/y/subjectaccessreviews",
			body: "{}", code: 404,
		},
		{user: "lord", method: "GET", path: "/api/v1/namespaces/y", code: 200},
		{user: "lord", method: "GET", path: "/api/v1/namespaces/y/namespaces", code: 404},
		{user: "lord", method: "DELETE", path: "/api/v1/namespaces/y/namespaces/default", code: 404},
		// What no rule stops is nothing that a route leads to.
		{user: "root", method: "DELETE", path: "/api/v1/watch/namespaces/y/configmaps/two", code: 405},
		{user: "root", method: "GET", path: "/api/v1/watch/namespaces/y/pods/p/log", code: 404},
		{user: "root", method: "GET", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews?watch=1", code: 405},
		{
			user: "root", method: "PUT", path: maps + "/two" + only, body: strings.Replace(three, "three", "two", 1),
			code: 200,
		},
		{user: "root", method: "GET", path: maps + "/two", code: 200},
		{user: "root", method: "GET", path: maps + "/three", code: 404},
	})
}

// TestAggregatedRolesHaveTheRulesOfTheirPartsAlone: what stands in one itself is replaced, in a cluster by a
// controller.
func TestAggregatedRolesHaveTheRulesOfTheirPartsAlone(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true})
	admin := clientset(t, config)
	sum := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "sum"},
		Rules:      []rbacv1.PolicyRule{rule("list", "secrets")}, AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "x"}}},
		},
	}
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"part": "x"}},
		Rules:      []rbacv1.PolicyRule{rule("list", "pods")},
	}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: "x"}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "sum"},
	}
	ctx, o := context.Background(), metav1.CreateOptions{}
	for _, r := range []*rbacv1.ClusterRole{sum, part} {
		if _, err := admin.RbacV1().ClusterRoles().Create(ctx, r, o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, bound, o); err != nil {
		t.Fatal(err)
	}
	expect(t, server, []asked{
		{user: "x", method: "GET", path: "/api/v1/pods", code: 200},
		{user: "x", method: "GET", path: "/api/v1/secrets", code: 403},
	})
}
