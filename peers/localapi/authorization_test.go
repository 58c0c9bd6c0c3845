package localapi

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAuthorization compares what both servers let users do: reviews, kinds of users by methods by paths, writes of
// roles, bindings and certificates, and impersonation. The status codes of allowed requests are compared by the
// scripts.
func TestAuthorization(t *testing.T) {
	real, ours := rbacServers(t)
	for name, compare := range map[string]func(t *testing.T, real, ours *server){
		"reviews": compareReviews, "requests": compareRequests, "grants": compareGrants,
		"impersonation":      compareImpersonation,
		"roles at the start": compareRoles, "signing": compareSigning, "parameters": compareParameters,
	} {
		t.Run(name, func(t *testing.T) { compare(t, real, ours) })
	}
}

func compareRequests(t *testing.T, real, ours *server) {
	const inX = "/api/v1/namespaces/x/"
	paths := []string{
		inX + "configmaps", inX + "configmaps/one", inX + "configmaps/two", inX + "configmaps/new", inX + "configmaps/",
		inX + "configmaps?fieldSelector=metadata.name%3Done", inX + "configmaps?fieldSelector=metadata.name%21%3Done",
		inX + "configmaps?fieldSelector=metadata.name%3Done&limit=x", inX +
			"configmaps?fieldSelector=metadata.name%3Da%2Fb",
		inX + "configmaps/two?fieldSelector=metadata.name%3Done", inX + "configmaps?watch=0", inX +
			"configmaps?watch=1&timeoutSeconds=1",
		inX + "configmaps?watch&timeoutSeconds=1", inX + "configmaps/one?watch=1&timeoutSeconds=1", inX +
			"configmaps?watch=FALSE",
		inX + "endpoints/one", inX + "endpoints/new", inX + "endpoints/other", inX + "services/new",
		inX + "pods", inX + "pods/p", inX + "pods/p/log", inX + "pods/p/log/more", inX + "pods/p/eviction", inX +
			"pods/p/status", inX + "pods/p/exec", inX + "pods/p/attach", inX + "pods/p/portforward", inX +
			"pods/p/proxy", inX + "pods/new/exec", inX + "services/new/proxy",
		inX + "nodes", inX + "nodes/n", inX + "nodes/n/status", inX + "namespaces", inX + "namespaces/y",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/x/clusterroles/view",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/x/clusterrolebindings",
		"/apis/authorization.k8s.io/v1/namespaces/x/subjectaccessreviews",
		"/api/v1/configmaps/one", "/api/v1/pods/p/status",
		"/apis/apps/v1/namespaces/x/deployments/d/scale", "/apis/apps/v1/namespaces/x/deployments/d",
		"/apis/apps/v1/namespaces/x/statefulsets/s/scale",
		"/api/v1/watch/namespaces/x/configmaps?timeoutSeconds=1",
		"/api/v1/watch/namespaces/x/configmaps/one?timeoutSeconds=1",
		"/api/v1/watch/namespaces/x/configmaps?timeoutSeconds=1&fieldSelector=metadata.name%3Done",
		"/api/v1/watch/configmaps?timeoutSeconds=1",
		"/api/v1/watch", "/api/v1/watch/namespaces/x?timeoutSeconds=1", "/api/v1/proxy/namespaces/x/pods/p",
		"/api/v1/proxy",
		"/api/v1/namespaces", "/api/v1/namespaces/x", "/api/v1/namespaces/y", "/api/v1/namespaces/x/status",
		"/api/v1/namespaces/x/finalize",
		"/api/v1/namespaces/x/status/more", "/api/v1/namespaces?fieldSelector=metadata.name%3Dx",
		"/api/v1/configmaps", "/api/v1/namespaces//configmaps", "/api/v1/namespaces/x%2Fconfigmaps/one", inX +
			"configmaps%2Fone", inX + "CONFIGMAPS",
		"/API/v1/configmaps", "/api/v1//configmaps", "/apis/example.com/v1/things",
		"/apis/example.com/v1/namespaces/x/status",
		"/api", "/api/", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1/", "/healthz", "/healthz/", "/livez/",
		"/readyz/", "/version", "/version/", "/metrics", "/", "/openapi/v2/", "/openapi/v3", "/openapi/v3/",
		"/nothing",
	}
	var all []question
	for _, p := range policies() {
		if p.places > 0 {
			continue
		}
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "APPLY", "PATCH", "DELETE", "OPTIONS",
			"STRANGE",
		} {
			for _, path := range paths {
				q := question{user: p.kind + "-0", method: method, path: path}
				all = append(all, q)
			}
		}
	}
	var refused atomic.Int64
	atOnce(all, func(q question) {
		content := ""
		if slices.Contains([]string{"POST", "PUT", "APPLY", "PATCH"}, q.method) {
			content = body(q.path)
		}
		want, have := real.answer(t, q, content), ours.answer(t, q, content)
		if want.code == http.StatusForbidden {
			refused.Add(1)
		}
		if q.method == "HEAD" && want.code == http.StatusMethodNotAllowed {
			return // localapi answers discovery as to GET
		}
		noRoute := (want.code == http.StatusNotFound || want.code == http.StatusMethodNotAllowed) && q.method != "HEAD"
		refusal := want.code == http.StatusForbidden || have.code == http.StatusForbidden
		// what else there is to say is not about authorization
		if refusal && want != have || noRoute && have.code < 300 {
			t.Errorf("%v:\nkube-apiserver %+v\nlocalapi       %+v", q, want, have)
		}
	})
	t.Logf("%d requests, %d refused", len(all), refused.Load())
}

func compareGrants(t *testing.T, real, ours *server) {
	write := func(kind, name string, content map[string]any) string {
		o := map[string]any{"apiVersion": rbacGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": name}}
		maps.Copy(o, content)
		return encode(o)
	}
	rules := []map[string]any{
		{"rules": []rbacv1.PolicyRule{}},
		{"rules": []rbacv1.PolicyRule{can("get", "", "pods"), can("get,list", "", "configmaps", "a", "b")}},
		{"rules": []rbacv1.PolicyRule{can("get,delete", "", "pods,secrets")}},
		{"rules": []rbacv1.PolicyRule{can("get", "", "secrets", "one", "two")}},
		{"rules": []rbacv1.PolicyRule{can("get", "", "secrets", "one")}},
		{"rules": []rbacv1.PolicyRule{can("*", "", "pods")}},
		{"rules": []rbacv1.PolicyRule{can("get", "*", "pods")}},
		{
			"rules": []rbacv1.PolicyRule{
				can("get,update", "apps", "deployments/scale,*/scale"),
				can("get", "apps", "deployments"),
			},
		},
		{
			"rules": []rbacv1.PolicyRule{
				can("get", "", "pods,services"), can("get", "", "services"),
				can("list", "", "services"),
			},
		},
		{
			"rules": []rbacv1.PolicyRule{
				{
					Verbs:           []string{"get", "post"},
					NonResourceURLs: []string{"/metrics/a", "/metrics", "/debug", "/debug/*"},
				},
			},
		},
		{"rules": []rbacv1.PolicyRule{can("", "", "")}},
		{"rules": []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}}}},
	}
	aggregation := func(rules ...rbacv1.PolicyRule) map[string]any {
		return map[string]any{
			"rules": rules,
			"aggregationRule": map[string]any{
				"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"a": "b"}}},
			},
		}
	}
	var requests []request
	const cluster, inX, gone = "/apis/" + rbacGroup + "/v1/", "/apis/" + rbacGroup + "/v1/namespaces/x/", "/apis/" +
		rbacGroup + "/v1/namespaces/gone/"
	for _, r := range append(rules, aggregation(), aggregation(can("get", "", "pods"))) {
		_, sums := r["aggregationRule"]
		for _, name := range []string{"new", "named", "stored"} {
			if !sums {
				requests = append(requests,
					request{"POST", inX + "roles", write("Role", name, r)},
					request{"PUT", inX + "roles/" + name, write("Role", name, r)},
					request{"APPLY", inX + "roles/" + name, write("Role", name, r)},
					request{"POST", gone + "roles", write("Role", name, r)},
					request{"PATCH", inX + "roles/" + name, encode(r)},
					request{"PUT", inX + "roles/other", write("Role", name, r)})
			}
			requests = append(requests,
				request{"POST", cluster + "clusterroles", write("ClusterRole", name, r)},
				request{"PUT", cluster + "clusterroles/" + name, write("ClusterRole", name, r)},
				request{"APPLY", cluster + "clusterroles/" + name, write("ClusterRole", name, r)},
				request{"PATCH", cluster + "clusterroles/" + name, encode(r)})
		}
	}
	generated := map[string]any{"metadata": map[string]any{"generateName": "g-"}, "rules": rules[2]["rules"]}
	requests = append(requests, request{"POST", cluster + "clusterroles", write("ClusterRole", "", generated)})
	for _, change := range []string{
		`{"metadata":{"finalizers":["a/b"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1"}]}}`,
		`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"a":"b"}}}`,
		`{"metadata":{"resourceVersion":"1"}}`, `{}`,
		`{"aggregationRule":null}`, `{"rules":null}`,
	} {
		for _, path := range []string{inX + "roles/stored", cluster + "clusterroles/stored", cluster +
			"clusterroles/sum", cluster + "clusterroles/cluster-admin", cluster + "clusterrolebindings/stored"} {
			requests = append(requests, request{"PATCH", path, change})
		}
	}
	for _, ref := range []rbacv1.RoleRef{
		{APIGroup: rbacGroup, Kind: "Role", Name: "stored"},
		{APIGroup: rbacGroup, Kind: "Role", Name: "small"},
		{APIGroup: rbacGroup, Kind: "Role", Name: "gone"},
		{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "stored"},
		{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "cluster-admin"},
		{Kind: "ClusterRole", Name: "system:basic-user"},
		{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "edit"},
		{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "gone"},
		{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "a/b"},
		{APIGroup: rbacGroup, Kind: "ClusterRole"},
		{APIGroup: rbacGroup, Kind: "Group", Name: "a"},
		{APIGroup: "apps", Kind: "ClusterRole", Name: "stored"},
	} {
		content := map[string]any{"roleRef": ref, "subjects": []rbacv1.Subject{{Kind: "User", Name: "joe"}}}
		requests = append(requests,
			request{"POST", inX + "rolebindings", write("RoleBinding", "new", content)},
			request{"PUT", inX + "rolebindings/new", write("RoleBinding", "new", content)},
			request{"APPLY", inX + "rolebindings/new", write("RoleBinding", "new", content)},
			request{"POST", gone + "rolebindings", write("RoleBinding", "new", content)},
			request{"POST", cluster + "clusterrolebindings", write("ClusterRoleBinding", "new", content)},
			request{"PUT", cluster + "clusterrolebindings/stored", write("ClusterRoleBinding", "stored", content)},
			request{"APPLY", cluster + "clusterrolebindings/new", write("ClusterRoleBinding", "new", content)})
	}
	compareWrites(t, real, ours, requests, "author-0", "escalator-0", "binder-0", "all-0", "lost-0", "nobody-0", "root")
}

// request is a question of several users.
type request struct{ method, path, content string }

// compareWrites compares what becomes of requests, in the name of each user.
func compareWrites(t *testing.T, real, ours *server, requests []request, users ...string) {
	t.Helper()
	var refused atomic.Int64
	atOnce(requests, func(r request) {
		for _, user := range users {
			q := question{user: user, method: r.method, path: r.path}
			want, have := real.answer(t, q, r.content), ours.answer(t, q, r.content)
			if want.code == http.StatusForbidden {
				refused.Add(1)
			}
			if want.code != have.code || want.message != have.message {
				t.Errorf("%v %s:\nkube-apiserver %+v\nlocalapi       %+v", q, r.content, want, have)
			}
		}
	})
	t.Logf("%d requests by each of %d users, %d refused", len(requests), len(users), refused.Load())
}

func compareImpersonation(t *testing.T, real, ours *server) {
	// Each user has but one mask: the real server tries the way that was good for a user's last one first, and says
	// what that lacks.
	type masked struct {
		user   string
		header http.Header
	}
	var all []masked
	for i, header := range masks() {
		for _, kind := range []string{"legacy", "constrained", "powerless", "full"} {
			all = append(all, masked{fmt.Sprintf("%s-%d", kind, i), header})
		}
	}
	requests := []struct{ method, path string }{
		{"GET", "/api/v1/namespaces/x/pods"},
		{"GET", "/api/v1/namespaces/x/pods/p"},
		{"GET", "/api/v1/secrets"},
		{"GET", "/apis"},
		{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"},
		{"APPLY", "/api/v1/namespaces/x/configmaps/new"},
	}
	var refused atomic.Int64
	atOnce(all, func(m masked) {
		for _, r := range requests {
			q := question{user: m.user, method: r.method, path: r.path, header: m.header}
			content := ""
			if r.method != "GET" {
				content = body(r.path)
			}
			want, have := real.answer(t, q, content), ours.answer(t, q, content)
			if want.code == http.StatusForbidden {
				refused.Add(1)
			}
			if want != have && (want.code >= 400 || have.code >= 400 || want.who != have.who) {
				t.Errorf("%v:\nkube-apiserver %+v\nlocalapi       %+v", q, want, have)
			}
		}
	})
	t.Logf("%d masks, %d requests, %d refused", len(masks()), len(all)*len(requests), refused.Load())
}

// compareRoles holds the roles and bindings that our server has from the start to the real ones of the same names.
func compareRoles(t *testing.T, real, ours *server) {
	list, err := ours.admin.RbacV1().ClusterRoles().List(t.Context(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping=rbac-defaults"})
	if err != nil || len(list.Items) < 8 {
		t.Fatalf("%d roles: %v", len(list.Items), err)
	}
	for _, have := range list.Items {
		want, err := real.admin.RbacV1().ClusterRoles().Get(t.Context(), have.Name, metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		if !maps.Equal(want.Labels, have.Labels) || !maps.Equal(want.Annotations, have.Annotations) ||
			!reflect.DeepEqual(want.AggregationRule, have.AggregationRule) {
			t.Errorf("%s: %+v %+v, ours %+v %+v", have.Name, want.ObjectMeta, want.AggregationRule, have.ObjectMeta,
				have.AggregationRule)
		}
		if want.AggregationRule != nil {
			continue // theirs are filled in, ours looked up
		}
		for p := range permissions(want.Rules) {
			if !permissions(have.Rules)[p] {
				t.Errorf("%s does not allow %s", have.Name, p)
			}
		}
		for p := range permissions(have.Rules) {
			if !permissions(want.Rules)[p] {
				t.Errorf("%s allows %s", have.Name, p)
			}
		}
	}
	bindings, err := ours.admin.RbacV1().ClusterRoleBindings().List(t.Context(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/bootstrapping=rbac-defaults"})
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range bindings.Items {
		want, err := real.admin.RbacV1().ClusterRoleBindings().Get(t.Context(), have.Name, metav1.GetOptions{})
		if err != nil || !reflect.DeepEqual(want.Subjects, have.Subjects) || want.RoleRef != have.RoleRef {
			t.Errorf("binding %s: %+v, %v, ours %+v", have.Name, want, err, have)
		}
	}
}

// permissions are all that rules allow, in the smallest pieces.
func permissions(rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, url := range r.NonResourceURLs {
				all[verb+" "+url] = true
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					all[fmt.Sprintf("%s %s.%s %v", verb, resource, group, r.ResourceNames)] = true
				}
			}
		}
	}
	return all
}
