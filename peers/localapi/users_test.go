package localapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// policy is what a kind of user may do, everywhere or in the namespace x. A user is called after a kind: "reader-3".
type policy struct {
	kind   string
	inX    bool
	rules  []rbacv1.PolicyRule
	places int // how many users there are of the kind, if it is one for a comparison of its own
}

func can(verbs, group, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{group},
		Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

const (
	rbacGroup  = rbacv1.GroupName
	authnGroup = authenticationv1.GroupName

	certificatesGroup = certificatesv1.GroupName
	policyGroup       = registrationv1.GroupName

	writing     = "get,list,create,update,patch,delete"
	connections = "pods/exec,pods/attach,pods/portforward,pods/proxy,services/proxy"
)

// policies are all kinds of users.
func policies() []policy {
	roles := can(writing, rbacGroup, "roles,rolebindings,clusterroles,clusterrolebindings")
	signing := can(writing, certificatesGroup,
		"certificatesigningrequests,certificatesigningrequests/approval,certificatesigningrequests/status")
	return []policy{
		{kind: "nobody"},
		{kind: "reader", inX: true, rules: []rbacv1.PolicyRule{can("get,list,watch", "", "pods,pods/log,configmaps")}},
		{
			kind: "changer", inX: true,
			rules: []rbacv1.PolicyRule{can("get,update,patch", "", "configmaps,endpoints,services")},
		},
		{
			kind: "namer",
			rules: []rbacv1.PolicyRule{
				can("*", "", "configmaps,endpoints,namespaces", "one", "x"),
				can("create", "", "endpoints", "new"),
			},
		},
		{
			kind: "maker", inX: true,
			rules: []rbacv1.PolicyRule{can("create,deletecollection", "", "configmaps,pods/eviction,endpoints")},
		},
		{
			kind: "scaler",
			rules: []rbacv1.PolicyRule{
				can("*", "*", "*/scale"),
				{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"/apis/*", "/healthz/"}},
			},
		},
		{kind: "author", rules: []rbacv1.PolicyRule{
			roles, can("get,list", "", "pods,configmaps"), can("get", "", "secrets", "one"),
			can("*", "apps", "*/scale"),
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*", "/debug"}},
		}},
		{
			kind: "escalator",
			rules: []rbacv1.PolicyRule{
				roles, can("escalate", rbacGroup, "clusterroles"),
				can("escalate", rbacGroup, "roles", "named"),
			},
		},
		{
			kind: "binder",
			rules: []rbacv1.PolicyRule{
				roles, can("bind", rbacGroup, "clusterroles", "edit"),
				can("bind", rbacGroup, "roles"),
			},
		},
		{
			kind:  "all",
			rules: []rbacv1.PolicyRule{can("*", "*", "*"), {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
		},
		{kind: "peeker", inX: true, rules: []rbacv1.PolicyRule{can("get", "", connections)}},
		{kind: "connector", inX: true, rules: []rbacv1.PolicyRule{can("get,create", "", connections)}},
		{kind: "lord", inX: true, rules: []rbacv1.PolicyRule{can("*", "*", "*")}},
		{kind: "lost", rules: []rbacv1.PolicyRule{roles}},
		{kind: "legacy", places: len(masks()), rules: []rbacv1.PolicyRule{
			can("impersonate", "", "users,groups", "joe", "devs", "system:node:n1"),
			can("impersonate", "", "serviceaccounts", "robot"),
			can("impersonate", authnGroup, "userextras/scopes", "read"), can("impersonate", authnGroup, "uids", "7"),
		}},
		{kind: "constrained", places: len(masks()), rules: []rbacv1.PolicyRule{
			can("impersonate:user-info", authnGroup, "users,groups,uids,userextras/scopes"),
			can("impersonate-on:user-info:list", "", "pods"),
			can("impersonate:serviceaccount", authnGroup, "serviceaccounts"),
			can("impersonate-on:serviceaccount:create", authnGroup, "selfsubjectreviews"),
			can("impersonate:arbitrary-node", authnGroup, "nodes"), can("impersonate-on:arbitrary-node:*", "*", "*"),
			can("impersonate-on:arbitrary-node:create", authnGroup, "selfsubjectreviews"),
			can("impersonate-on:user-info:create", authnGroup, "selfsubjectreviews"),
		}},
		{kind: "powerless", places: len(masks())},
		{
			kind: "full", places: len(masks()),
			rules: []rbacv1.PolicyRule{can("*", "*", "*"), {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
		},
		{kind: "clerk", places: 1, rules: []rbacv1.PolicyRule{signing}},
		{
			kind: "approver", places: 1,
			rules: []rbacv1.PolicyRule{signing, can("approve", certificatesGroup, "signers", "example.com/a")},
		},
		{
			kind: "domain", places: 1,
			rules: []rbacv1.PolicyRule{signing, can("approve,sign", certificatesGroup, "signers", "example.com/*")},
		},
		{
			kind: "signer", places: 1,
			rules: []rbacv1.PolicyRule{
				signing,
				can("sign", certificatesGroup, "signers", "example.com/b", "example.com/*/a"),
			},
		},
		{
			kind: "notary", places: 1,
			rules: []rbacv1.PolicyRule{signing, can("approve,sign", certificatesGroup, "signers")},
		},
		{kind: "guard", places: 1, rules: []rbacv1.PolicyRule{can(writing, policyGroup, "*")}},
		{kind: "guard-of-one", places: 1, rules: []rbacv1.PolicyRule{
			can(writing, policyGroup, "*"), can("get", "", "configmaps", "one"), can("list", "", "configmaps"),
		}},
		{kind: "guard-of-all", places: 1, rules: []rbacv1.PolicyRule{
			can(writing, policyGroup, "*"), can("get", "", "configmaps,secrets"),
		}},
		{kind: "last", places: 1, rules: []rbacv1.PolicyRule{can("list", "", "pods")}},
		{kind: "last-in-x", places: 1, inX: true, rules: []rbacv1.PolicyRule{can("list", "", "pods")}},
	}
}

// masks are the ways to ask for another identity.
func masks() []http.Header {
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	const user, group, uid, extra = "Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-"
	return []http.Header{
		header(user, "joe"), header(user, "ann"), header(user, "joe", group, "devs"), header(user, "joe", group, "ops"),
		header(user, "joe", group, "devs", group, "system:masters"),
		header(user, "joe", group, "a", group, "b", group, "c", group, "d"),
		header(user, "joe", group, "system:unauthenticated"), header(user, "joe", uid, "7"),
		header(user, "joe", uid, "8"),
		header(user, "joe", extra+"scopes", "read"), header(user, "joe", extra+"Scopes", "write"),
		header(user, "joe", extra+"acme.com%2fx", "1"),
		header(user, "joe", extra+"a_b", "1"), header(user, "system:serviceaccount:x:robot"),
		header(user, "system:serviceaccount:x:other"),
		header(user, "system:serviceaccount:x:robot", group, "devs"), header(user, "system:serviceaccount:Bad:robot"),
		header(user, "system:node:n1"), header(user, "system:node:n1", group, "devs"), header(user, "system:anonymous"),
		header(group, "devs"), header(uid, "7"), header(extra+"scopes", "read"), header(user, "", group, "devs"),
		header(user, "joe", group, ""),
	}
}

// users are the names of all users.
func users() []string {
	var all []string
	for _, p := range policies() {
		for i := range max(p.places, 1) {
			all = append(all, fmt.Sprintf("%s-%d", p.kind, i))
		}
	}
	return append(all, "root")
}

// question is a request in somebody's name. Writes are dry runs.
type question struct {
	user, method, path string
	header             http.Header
}

func (q question) String() string {
	return fmt.Sprintf("%s: %s %s %v", q.user, q.method, q.path, q.header)
}

// verdict is what became of it: a code, and the message if it is a refusal.
type verdict struct {
	code    int
	message string
	who     string // the identity in the answer to a SelfSubjectReview
}

// server is one of the two, with RBAC.
type server struct {
	admin kubernetes.Interface
	host  string
	of    func(user string) http.RoundTripper
}

// objects are the bodies that requests for a path carry, by the resource in it.
var objects = map[string]string{
	"configmaps": "v1 ConfigMap", "endpoints": "v1 Endpoints", "services": "v1 Service", "pods": "v1 Pod",
	"namespaces": "v1 Namespace",
	"eviction":   "policy/v1 Eviction", "scale": "autoscaling/v1 Scale",
	"selfsubjectreviews": "authentication.k8s.io/v1 SelfSubjectReview",
}

// body is what a request to a path sends.
func body(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := len(parts) - 1; i >= 0; i-- {
		version, kind, ok := strings.Cut(objects[parts[i]], " ")
		if !ok {
			continue
		}
		name := "made"
		if i+1 < len(parts) {
			name = parts[i+1]
		}
		if i > 0 && i == len(parts)-1 && (parts[i] == "eviction" || parts[i] == "scale") {
			name = parts[i-1]
		}
		o := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
		switch kind {
		case "SelfSubjectReview":
			delete(o, "metadata")
		case "Service":
			o["spec"] = map[string]any{"ports": []any{map[string]any{"port": 80}}}
		}
		return encode(o)
	}
	return "{}"
}

// answer sends a question.
//
// Concurrency: it may be called at once for several.
func (s *server) answer(t *testing.T, q question, content string) verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	method, path, contentType := q.method, q.path, "application/json"
	mutates := slices.Contains([]string{"POST", "PUT", "APPLY", "PATCH", "DELETE"}, method) &&
		!strings.Contains(path, "selfsubjectreviews")
	query := map[bool]string{true: "dryRun=All"}[mutates]
	switch method {
	case "APPLY":
		method, contentType, query = http.MethodPatch, "application/apply-patch+yaml", query+
			"&fieldManager=m&force=true"
	case "PATCH":
		contentType = "application/merge-patch+json"
	case "DELETE":
		content = ""
	}
	if query != "" {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + query
	}
	req, err := http.NewRequestWithContext(ctx, method, s.host+path, strings.NewReader(content))
	if err != nil {
		t.Error(err)
		return verdict{}
	}
	req.Header = maps.Clone(q.header)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if content != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := s.of(q.user).RoundTrip(req)
	if err != nil {
		t.Errorf("%v: %v", q, err)
		return verdict{}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%v: %v", q, err)
	}
	v := verdict{code: resp.StatusCode}
	var status metav1.Status
	switch {
	case v.code >= 300 && json.Unmarshal(data, &status) == nil:
		v.message = status.Message
	case v.code < 300 && strings.HasSuffix(q.path, "selfsubjectreviews"):
		var review authenticationv1.SelfSubjectReview
		if err := json.Unmarshal(data, &review); err != nil {
			t.Error(err)
		}
		v.who = encode(asTree(t, review.Status.UserInfo))
	}
	return v
}

// atOnce performs f for each of some things, for several at a time.
func atOnce[T any](things []T, f func(T)) {
	next := make(chan T)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for thing := range next {
				f(thing)
			}
		})
	}
	for _, thing := range things {
		next <- thing
	}
	close(next)
	wg.Wait()
}

// rbacServers are the real one, with the controller that makes roles of others, and ours, with the same users and
// grants.
func rbacServers(t *testing.T) (real, ours *server) {
	t.Helper()
	tokens := map[string]string{}
	for _, u := range users() {
		tokens["token-"+u] = u
	}
	delete(tokens, "token-root")
	p, err := upstream.Start(t.Context(), upstream.Options{
		AuthorizationMode: "RBAC", Users: tokens, Controllers: []string{"clusterrole-aggregation-controller"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	transports := map[string]http.RoundTripper{}
	for _, u := range users() {
		c := rest.CopyConfig(config)
		if u != "root" {
			c.BearerToken, c.BearerTokenFile = "token-"+u, ""
		}
		if transports[u], err = rest.TransportFor(c); err != nil {
			t.Fatal(err)
		}
	}
	real = &server{
		admin: kubernetes.NewForConfigOrDie(config), host: config.Host,
		of: func(u string) http.RoundTripper { return transports[u] },
	}
	local := localapi.NewTestWith(t, localapi.Options{RBAC: true})
	admin := kubernetes.NewForConfigOrDie(local.RESTConfig())
	ours = &server{admin: admin, host: local.RESTConfig().Host, of: func(u string) http.RoundTripper {
		if u == "root" {
			return local.RESTConfigFor(auth.User{Name: "admin", UID: "admin", Groups: []string{auth.Masters}}).Transport
		}
		return local.RESTConfigFor(auth.User{Name: u, UID: u}).Transport
	}}
	for _, s := range []*server{real, ours} {
		s.prepare(t)
	}
	real.settle(t)
	return real, ours
}

// prepare makes what the questions are about.
func (s *server) prepare(t *testing.T) {
	t.Helper()
	ctx, o := t.Context(), metav1.CreateOptions{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made := func(_ any, err error) { t.Helper(); must(err) }
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, ns := range []string{"x", "y"} {
		made(s.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: named(ns)}, o))
	}
	for _, cm := range []string{"one", "two"} {
		made(s.admin.CoreV1().ConfigMaps("x").Create(ctx, &corev1.ConfigMap{ObjectMeta: named(cm)}, o))
		made(
			s.admin.CoreV1().Endpoints("x").Create(ctx, &corev1.Endpoints{ObjectMeta: named(cm)}, o),
		) //nolint:staticcheck // it is what can be made by a PUT
	}
	sum := &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "of"}}},
	}
	made(
		s.admin.RbacV1().ClusterRoles().Create(ctx,
			&rbacv1.ClusterRole{ObjectMeta: named("sum"), AggregationRule: sum}, o),
	)
	made(
		s.admin.RbacV1().ClusterRoles().Create(ctx,
			&rbacv1.ClusterRole{ObjectMeta: named("stored"), Rules: []rbacv1.PolicyRule{can("*", "", "secrets")}}, o),
	)
	made(
		s.admin.RbacV1().Roles("x").Create(ctx,
			&rbacv1.Role{ObjectMeta: named("stored"), Rules: []rbacv1.PolicyRule{can("*", "", "secrets")}}, o),
	)
	made(
		s.admin.RbacV1().Roles("x").Create(ctx,
			&rbacv1.Role{ObjectMeta: named("small"), Rules: []rbacv1.PolicyRule{can("get", "", "pods")}}, o),
	)
	ref := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "stored"}
	made(
		s.admin.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: named("stored"), RoleRef: ref}, o),
	)
	gone := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "gone"}
	lost := []rbacv1.Subject{{Kind: "User", APIGroup: rbacGroup, Name: "lost-0"}}
	made(
		s.admin.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: named("lost-gone"), RoleRef: gone, Subjects: lost}, o),
	)
	joe := []rbacv1.Subject{
		{Kind: "User", APIGroup: rbacGroup, Name: "joe"},
		{Kind: "ServiceAccount", Name: "robot", Namespace: "x"},
	}
	view := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "system:aggregate-to-view"}
	made(
		s.admin.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: named("joe"), RoleRef: view, Subjects: joe}, o),
	)
	for _, p := range policies() {
		var subjects []rbacv1.Subject
		for i := range max(p.places, 1) {
			subjects = append(subjects,
				rbacv1.Subject{Kind: "User", APIGroup: rbacGroup, Name: fmt.Sprintf("%s-%d", p.kind, i)})
		}
		ref := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "of-" + p.kind}
		made(
			s.admin.RbacV1().ClusterRoles().Create(ctx,
				&rbacv1.ClusterRole{ObjectMeta: named("of-" + p.kind), Rules: p.rules}, o),
		)
		if p.inX {
			made(
				s.admin.RbacV1().RoleBindings("x").Create(ctx,
					&rbacv1.RoleBinding{ObjectMeta: named("of-" + p.kind), RoleRef: ref, Subjects: subjects}, o),
			)
		} else {
			made(
				s.admin.RbacV1().ClusterRoleBindings().Create(ctx,
					&rbacv1.ClusterRoleBinding{ObjectMeta: named("of-" + p.kind), RoleRef: ref, Subjects: subjects}, o),
			)
		}
	}
}

// settle waits until the authorizer of the real server, which reads from caches, knows the users that were made last.
func (s *server) settle(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for _, user := range []string{"last-0", "last-in-x-0"} {
		for {
			v := s.answer(t, question{user: user, method: "GET", path: "/api/v1/namespaces/x/pods"}, "")
			if v.code == http.StatusOK {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the real server does not see the grants: %+v", v)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
