package localapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// grants are the roles and bindings that the questions are about.
var grants = []struct {
	namespace string // "" is the cluster
	name      string
	rules     []rbacv1.PolicyRule
	to        []rbacv1.Subject
	role      string // an existing ClusterRole to bind instead of rules
}{
	{namespace: "x", name: "reader", rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}},
		{
			Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{"one"},
		},
	}, to: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "ann"}}},
	{namespace: "x", name: "scaler", rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*/scale"}},
	}, to: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "ops"}}},
	{name: "nodes", rules: []rbacv1.PolicyRule{
		{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/debug/*"}},
	}, to: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "x", Name: "machine"}}},
	{
		namespace: "x", name: "edit", role: "edit",
		to: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "ed"}},
	},
	{
		namespace: "x", name: "view", role: "view",
		to: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "vi"}},
	},
	{
		name: "admin-everywhere", role: "admin",
		to: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "adam"}},
	},
	{
		namespace: "x", name: "lost", role: "gone",
		to: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "lost"}},
	},
}

// askers are the users of the questions.
var askers = []authorizationv1.SubjectAccessReviewSpec{
	{User: "ann"},
	{User: "somebody", Groups: []string{"ops"}},
	{
		User:   "system:serviceaccount:x:machine",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:x", "system:authenticated"},
	},
	{User: "ed"},
	{User: "vi"},
	{User: "adam"},
	{User: "lost"},
	{User: "root", Groups: []string{"system:masters"}},
	{User: "system:anonymous", Groups: []string{"system:unauthenticated"}},
}

// questions are all combinations that the grants could tell apart, and some more.
func questions() []authorizationv1.SubjectAccessReviewSpec {
	var all []authorizationv1.SubjectAccessReviewSpec
	for _, asker := range askers {
		for _, verb := range []string{
			"get", "list", "watch", "create", "update", "patch", "delete",
			"deletecollection", "*",
		} {
			for _, what := range []authorizationv1.ResourceAttributes{
				{Resource: "pods"},
				{Resource: "pods", Name: "p"},
				{Resource: "pods", Subresource: "log"},
				{Resource: "pods", Subresource: "eviction"},
				{Resource: "pods", Subresource: "exec"},
				{Resource: "serviceaccounts", Subresource: "token"},
				{Resource: "resourcequotas"},
				{Resource: "replicationcontrollers", Subresource: "scale"},
				{Group: "networking.k8s.io", Resource: "ingresses"},
				{Group: "events.k8s.io", Resource: "events"},
				{Group: "storage.k8s.io", Resource: "storageclasses"},
				{Resource: "configmaps", Name: "one"},
				{Resource: "configmaps", Name: "two"},
				{Resource: "secrets"},
				{Group: "apps", Resource: "deployments"},
				{Group: "apps", Resource: "deployments", Subresource: "scale"},
				{Group: "apps", Resource: "deployments", Subresource: "status"},
				{Resource: "services"},
				{Resource: "endpoints"},
				{Resource: "events"},
				{Resource: "serviceaccounts"},
				{Resource: "namespaces"},
				{Group: "discovery.k8s.io", Resource: "endpointslices"},
				{Group: "coordination.k8s.io", Resource: "leases"},
				{Group: "batch", Resource: "jobs"},
				{Group: "batch", Resource: "cronjobs"},
				{Group: "policy", Resource: "poddisruptionbudgets"},
				{Group: "autoscaling", Resource: "horizontalpodautoscalers"},
				{Resource: "persistentvolumeclaims"},
				{Resource: "nodes"},
				{Group: "rbac.authorization.k8s.io", Resource: "roles"},
				{Group: "*", Resource: "*"},
				{Group: "example.com", Resource: "widgets"},
			} {
				for _, namespace := range []string{"x", "y", ""} {
					q := asker
					attributes := what
					attributes.Verb, attributes.Namespace = verb, namespace
					q.ResourceAttributes = &attributes
					all = append(all, q)
				}
			}
		}
		for _, path := range []string{"/api", "/apis/apps/v1", "/healthz", "/metrics", "/debug/pprof", "/version"} {
			q := asker
			q.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: "get", Path: path}
			all = append(all, q)
		}
	}
	return all
}

// compareReviews asks both servers which user may do what, and why.
func compareReviews(t *testing.T, real, ours *server) {
	for _, s := range []*server{real, ours} {
		makeGrants(t, s.admin)
	}
	eventuallyGranted(t, real.admin)
	var allowed atomic.Int64
	atOnce(questions(), func(q authorizationv1.SubjectAccessReviewSpec) {
		want, have := ask(t, real.admin, q), ask(t, ours.admin, q)
		if want.Allowed {
			allowed.Add(1)
		}
		if q.NonResourceAttributes != nil { // two roles allow some, and either may be named
			want.Reason, have.Reason = "", ""
		}
		if want != have {
			t.Errorf("%s: kube-apiserver says %+v, localapi %+v", ofReview(q), want, have)
		}
	})
	t.Logf("%d questions, %d allowed", len(questions()), allowed.Load())
}

func makeGrants(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, o := t.Context(), metav1.CreateOptions{}
	for _, g := range grants {
		m := metav1.ObjectMeta{Name: g.name, Namespace: g.namespace}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.role}
		var err error
		switch {
		case g.role != "":
		case g.namespace == "":
			ref.Name = g.name
			_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: m, Rules: g.rules}, o)
		default:
			ref.Kind, ref.Name = "Role", g.name
			_, err = client.RbacV1().Roles(g.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: m, Rules: g.rules}, o)
		}
		if err == nil && g.namespace == "" {
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx,
				&rbacv1.ClusterRoleBinding{ObjectMeta: m, RoleRef: ref, Subjects: g.to}, o)
		} else if err == nil {
			_, err = client.RbacV1().RoleBindings(g.namespace).Create(ctx,
				&rbacv1.RoleBinding{ObjectMeta: m, RoleRef: ref, Subjects: g.to}, o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eventuallyGranted waits until the authorizer of the real server, which reads from a cache, has seen the last
// grants, and until its controller has made the roles that are made of others.
func eventuallyGranted(t *testing.T, real kubernetes.Interface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	get := &authorizationv1.ResourceAttributes{Namespace: "x", Verb: "get", Resource: "pods"}
	lost := authorizationv1.SubjectAccessReviewSpec{User: "lost", ResourceAttributes: get}
	adam := authorizationv1.SubjectAccessReviewSpec{User: "adam", ResourceAttributes: get}
	for !strings.Contains(ask(t, real, lost).Reason, "gone") || !ask(t, real, adam).Allowed {
		select {
		case <-ctx.Done():
			t.Fatal("the real server does not see the grants")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func ask(t *testing.T, client kubernetes.Interface,
	q authorizationv1.SubjectAccessReviewSpec,
) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: q}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("%s: %v", ofReview(q), err)
		return authorizationv1.SubjectAccessReviewStatus{}
	}
	return review.Status
}

// ofReview is a question in short.
func ofReview(q authorizationv1.SubjectAccessReviewSpec) string {
	if n := q.NonResourceAttributes; n != nil {
		return fmt.Sprintf("%s: %s %s", q.User, n.Verb, n.Path)
	}
	r := q.ResourceAttributes
	parts := slices.DeleteFunc([]string{r.Resource, r.Subresource}, func(s string) bool { return s == "" })
	return fmt.Sprintf("%s: %s %s.%s %q in %q", q.User, r.Verb, strings.Join(parts, "/"), r.Group, r.Name, r.Namespace)
}
