package localapi_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// grant lets a user do what the rules say, in a namespace or, if that is empty, everywhere.
func grant(t *testing.T, admin kubernetes.Interface, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}
	var err error
	if namespace == "" {
		_, err = admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			metav1.CreateOptions{})
		if err == nil {
			ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: user}
			_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(),
				&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
		}
	} else {
		_, err = admin.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules},
			metav1.CreateOptions{})
		if err == nil {
			ref := rbacv1.RoleRef{Kind: "Role", Name: user}
			_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(),
				&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func rule(verbs, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{"", "apps"},
		Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

// TestRBACDecides: what no rule allows is refused, in the words of the real server.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters/errors.go.
func TestRBACDecides(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true, Namespaces: []string{"y"}})
	admin := clientset(t, config)
	grant(t, admin, "y", "x", rule("get,list", "pods"), rule("get", "configmaps", "one"), rule("update", "*/scale"))
	grant(t, admin, "", "reader", rule("list,watch", "nodes,pods"))
	for _, cm := range []string{"one", "two"} {
		mustCreate(t, admin.CoreV1().ConfigMaps("y"), configMap(cm))
	}
	for _, c := range []struct{ user, method, path, want string }{
		{"x", "GET", "/api/v1/namespaces/y/pods", ""},
		{
			"x", "GET", "/api/v1/namespaces/y/pods?watch=1&timeoutSeconds=1",
			`pods is forbidden: User "x" cannot watch resource "pods" in API group "" in the namespace "y"`,
		},
		{
			"x", "GET", "/api/v1/pods",
			`pods is forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope`,
		},
		{
			"x", "GET", "/api/v1/namespaces/default/pods",
			`pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"`,
		},
		{"x", "GET", "/api/v1/namespaces/y/configmaps/one", ""},
		{
			"x", "GET", "/api/v1/namespaces/y/configmaps/two",
			`configmaps "two" is forbidden: User "x" cannot get resource "configmaps" in API group "" in the namespace "y"`,
		},
		{
			"x", "DELETE", "/apis/apps/v1/namespaces/y/deployments/d",
			`deployments.apps "d" is forbidden: User "x" cannot delete resource "deployments" in API group "apps" in the namespace "y"`,
		},
		{
			"x", "DELETE", "/apis/apps/v1/namespaces/y/deployments",
			`deployments.apps is forbidden: User "x" cannot deletecollection resource "deployments" in API group "apps" in the namespace "y"`,
		},
		{
			"x", "GET", "/apis/apps/v1/namespaces/y/deployments/d/scale",
			`deployments.apps "d" is forbidden: User "x" cannot get resource "deployments/scale" in API group "apps" in the namespace "y"`,
		},
		{
			"x", "GET", "/api/v1/namespaces/y",
			`namespaces "y" is forbidden: User "x" cannot get resource "namespaces" in API group "" in the namespace "y"`,
		},
		{
			"x", "GET", "/apis/nonsense/v1/things",
			`things.nonsense is forbidden: User "x" cannot list resource "things" in API group "nonsense" at the cluster scope`,
		},
		{"x", "GET", "/apis", ""},
		{"x", "GET", "/metrics", `forbidden: User "x" cannot get path "/metrics"`},
		{"reader", "GET", "/api/v1/nodes", ""},
		{"reader", "GET", "/api/v1/namespaces/y/pods", ""},
		{auth.Anonymous, "GET", "/apis", `forbidden: User "system:anonymous" cannot get path "/apis"`},
		{auth.Anonymous, "GET", "/readyz", ""},
	} {
		u := auth.User{Name: c.user}
		if c.user == auth.Anonymous {
			u = auth.Nobody()
		}
		code, body := answer(t, server.RESTConfigFor(u), request{method: c.method, path: c.path})
		switch {
		case c.want == "":
			if code != http.StatusOK {
				t.Errorf("%s %s %s: %d %s, want 200", c.user, c.method, c.path, code, body)
			}
		case code != http.StatusForbidden || statusOf(t, body).Message != c.want:
			t.Errorf("%s %s %s: %d %s\nwant %s", c.user, c.method, c.path, code, statusOf(t, body).Message, c.want)
		}
	}
}

// TestRBACOfBindings: groups and service accounts are subjects too; a role that is missing is named; roles are made
// of others.
func TestRBACOfBindings(t *testing.T) {
	server, config := start(t, localapi.Options{RBAC: true})
	admin := clientset(t, config)
	bind := func(name, role string, subject rbacv1.Subject) {
		t.Helper()
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		}
		if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	bind("viewers", "view", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "devs"})
	bind("robot", "edit", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "robot"})
	bind("lost", "gone", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "lost"})
	as := func(u auth.User) kubernetes.Interface { return clientset(t, server.RESTConfigFor(u)) }

	dev := as(auth.User{Name: "dev", Groups: []string{"devs"}})
	if _, err := dev.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("view is made of its parts: %v", err)
	}
	if _, err := dev.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer writes: %v", err)
	}
	robot := as(auth.ServiceAccount("default", "robot"))
	if _, err := robot.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"),
		metav1.CreateOptions{}); err != nil {
		t.Errorf("an editor writes: %v", err)
	}
	_, err := as(auth.User{Name: "lost"}).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err == nil ||
		!strings.HasSuffix(err.Error(),
			`in the namespace "default": rbac: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`) {
		t.Errorf("a binding to a role that is missing: %v", err)
	}
}

// TestReviews: the server answers what a user may do and who a token belongs to.
func TestReviews(t *testing.T) {
	server, config := start(t,
		localapi.Options{RBAC: true, Tokens: map[string]auth.User{"secret": {Name: "x", Groups: []string{"g"}}}})
	admin := clientset(t, config)
	grant(t, admin, "default", "x", rule("get", "pods"))
	x := clientset(t, server.RESTConfigFor(auth.User{Name: "x"}))
	for verb, want := range map[string]bool{"get": true, "list": false} {
		attributes := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Resource: "pods"}
		mine, err := x.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
		if err != nil || mine.Status.Allowed != want {
			t.Errorf("may I %s: %+v, %v", verb, mine, err)
		}
		theirs, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "x", ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
		if err != nil || theirs.Status.Allowed != want {
			t.Errorf("may they %s: %+v, %v", verb, theirs, err)
		}
	}
	rules, err := x.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
		}, metav1.CreateOptions{})
	if err != nil || len(rules.Status.ResourceRules) != 3 || len(rules.Status.NonResourceRules) != 2 {
		t.Errorf("my rules: %+v, %v", rules, err)
	}
	for token, name := range map[string]string{"secret": "x", "other": ""} {
		review, err := admin.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token},
		}, metav1.CreateOptions{})
		if err != nil || review.Status.User.Username != name || review.Status.Authenticated != (name != "") {
			t.Errorf("whose token is %s: %+v, %v", token, review.Status, err)
		}
	}
	if code, _ := answer(t, config,
		request{path: "/apis/authorization.k8s.io/v1/subjectaccessreviews"}); code != http.StatusMethodNotAllowed {
		t.Errorf("list of reviews: %d", code)
	}
}

// TestTokens: over a socket users are known by tokens; without one they are anonymous, with a wrong one refused.
func TestTokens(t *testing.T) {
	server, _ := start(t,
		localapi.Options{
			RBAC:   true,
			Tokens: map[string]auth.User{"secret": {Name: "root", Groups: []string{auth.Masters}}},
		})
	addr := serving(t, server, loopback(t))
	for token, want := range map[string]string{
		"secret": "", "wrong": "Unauthorized",
		"": `namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the cluster scope`,
	} {
		transport := &http.Transport{}
		client := clientset(t,
			&rest.Config{Host: "http://" + addr, BearerToken: token, Transport: transport})
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil &&
			err.Error() != want || err == nil && want != "" {
			t.Errorf("token %q: %v, want %q", token, err, want)
		}
		transport.CloseIdleConnections()
	}
}

// TestClientCertificates: a certificate's common name is the user, its organisations are the groups.
func TestClientCertificates(t *testing.T) {
	server, _ := start(t, localapi.Options{RBAC: true})
	ca, l := newAuthority(t), loopback(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.server()}, ClientCAs: ca.Pool()}
	inBackground(t, func(ctx context.Context) error { return server.ServeTLS(ctx, l, config) })
	get := func(certificates ...tls.Certificate) int {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: certificates}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String() + "/api/v1/namespaces")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if code := get(ca.client("root", auth.Masters)); code != http.StatusOK {
		t.Errorf("a master's certificate: %d", code)
	}
	if code := get(ca.client("somebody")); code != http.StatusForbidden {
		t.Errorf("somebody's certificate: %d", code)
	}
	if code := get(); code != http.StatusForbidden {
		t.Errorf("no certificate: %d", code)
	}
}

// authority signs certificates, or fails the test.
type authority struct {
	*certs.Authority
	t *testing.T
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a, err := certs.NewAuthority(1)
	if err != nil {
		t.Fatal(err)
	}
	return authority{a, t}
}

func (a authority) server() tls.Certificate { return a.must(a.Server(net.IPv4(127, 0, 0, 1))) }

func (a authority) client(name string, groups ...string) tls.Certificate {
	return a.must(a.Client(name, groups...))
}

func (a authority) must(c tls.Certificate, err error) tls.Certificate {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// TestRequestLimits: more writes at once than the limit are told to come back; reads have a limit of their own,
// watches none.
func TestRequestLimits(t *testing.T) {
	held, release := make(chan struct{}, 10), make(chan struct{})
	g := gate.Funcs{OnRequest: func(ctx context.Context, r *gate.Request) gate.Verdict {
		if r.Verb == "create" && r.Resource == "configmaps" {
			held <- struct{}{}
			<-release
		}
		return gate.Verdict{}
	}}
	_, config := start(t, localapi.Options{MaxWrites: 2, MaxReads: 1, Gate: g})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { mustCreate(t, maps, configMap(fmt.Sprint("held", i))) })
		<-held
	}
	code, body := answer(t, config, request{method: "DELETE", path: "/api/v1/namespaces/default/configmaps/a"})
	if code != http.StatusTooManyRequests || body != "Too many requests, please try again later.\n" {
		t.Errorf("a third write: %d %q", code, body)
	}
	if _, err := maps.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a read meanwhile: %v", err)
	}
	close(release)
	wg.Wait()
	if err := maps.Delete(t.Context(), "held0", metav1.DeleteOptions{}); err != nil {
		t.Errorf("a write afterwards: %v", err)
	}
}

func ExampleServer_RESTConfigFor() {
	server, err := localapi.New(localapi.Options{RBAC: true})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(server.RESTConfigFor(auth.User{Name: "jane"}))
	_, err = client.CoreV1().Pods("shop").List(context.Background(), metav1.ListOptions{})
	fmt.Println(err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	_, err = client.CoreV1().Pods("shop").Update(context.Background(), pod, metav1.UpdateOptions{})
	fmt.Println(err)
	// Output:
	// pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "shop"
	// pods "web" is forbidden: User "jane" cannot update resource "pods" in API group "" in the namespace "shop"
}
