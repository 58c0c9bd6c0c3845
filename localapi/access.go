package localapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/handlers"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
)

// RESTConfigFor is [Server.RESTConfig] for a client that comes as user u: what it may do, with [Options.RBAC], the roles that
// are bound to u decide.
func (s *Server) RESTConfigFor(u auth.User) *rest.Config {
	u = u.Known()
	return &rest.Config{Host: memoryHost, Transport: transport{server: s, user: &u}, QPS: -1}
}

// coreObject finds an object of the core group; NotFound if its type is not served.
func (s *Server) coreObject(plural, namespace, name string) (metav1.Object, error) {
	r := s.served.Load().resources[corev1.SchemeGroupVersion.WithResource(plural)]
	if r == nil {
		return nil, apierrors.NewNotFound(corev1.Resource(plural), name)
	}
	o, err := r.Get(context.Background(), namespace, name, "")
	if err != nil {
		return nil, err
	}
	return o.Meta, nil
}

// issued knows the users of an issuer's tokens that are meant for this server.
func issued(i *tokens.Issuer) func(token string) (auth.User, bool, error) {
	return func(token string) (auth.User, bool, error) {
		u, _, ok, err := i.User(token, []string{tokens.Audience})
		return u, ok, err
	}
}

// storedRoles are the roles and bindings that the server serves.
type storedRoles struct{ server *Server }

func (s storedRoles) resource(plural string) *registry.Resource {
	return s.server.served.Load().resources[rbacv1.SchemeGroupVersion.WithResource(plural)]
}

// Role implements rbac.Roles.
func (s storedRoles) Role(namespace, name string) (*rbacv1.Role, error) {
	return find[*rbacv1.Role](s.resource("roles"), "role", namespace, name)
}

// ClusterRole implements rbac.Roles.
func (s storedRoles) ClusterRole(name string) (*rbacv1.ClusterRole, error) {
	return find[*rbacv1.ClusterRole](s.resource("clusterroles"), "clusterrole", "", name)
}

// ClusterRoles implements rbac.Roles.
func (s storedRoles) ClusterRoles() ([]*rbacv1.ClusterRole, error) {
	return all[*rbacv1.ClusterRole](s.resource("clusterroles"), "")
}

// RoleBindings implements rbac.Roles.
func (s storedRoles) RoleBindings(namespace string) ([]*rbacv1.RoleBinding, error) {
	return all[*rbacv1.RoleBinding](s.resource("rolebindings"), namespace)
}

// ClusterRoleBindings implements rbac.Roles.
func (s storedRoles) ClusterRoleBindings() ([]*rbacv1.ClusterRoleBinding, error) {
	return all[*rbacv1.ClusterRoleBinding](s.resource("clusterrolebindings"), "")
}

// find returns a stored object. Errors: NotFound, of the singular, as the real server's lister says.
func find[T runtime.Object](r *registry.Resource, singular, namespace, name string) (T, error) {
	var none T
	missing := apierrors.NewNotFound(rbacv1.Resource(singular), name)
	if r == nil {
		return none, missing
	}
	o, err := r.Get(context.Background(), namespace, name, "")
	if apierrors.IsNotFound(err) {
		return none, missing
	}
	if err != nil {
		return none, err
	}
	return o.Object.(T), nil
}

// all returns the stored objects of a namespace, or all.
func all[T runtime.Object](r *registry.Resource, namespace string) ([]T, error) {
	if r == nil {
		return nil, nil
	}
	list, err := r.List(context.Background(), registry.ListOptions{Selection: registry.Selection{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	objects := make([]T, len(list.Objects))
	for i, o := range list.Objects {
		objects[i] = o.Object.(T)
	}
	return objects, nil
}

// defaultRoles are the roles that every cluster has, as far as users meet them, and what binds them.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
func defaultRoles() []runtime.Object {
	urls := func(urls ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: urls}}
	}
	health := handlers.PublicPaths()
	discovery := append([]string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"}, health...)
	reviews := []rbacv1.PolicyRule{
		rules("authorization.k8s.io", []string{"create"}, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
		rules("authentication.k8s.io", []string{"create"}, "selfsubjectreviews"),
	}
	everything := []rbacv1.PolicyRule{
		rules("*", []string{"*"}, "*"), {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	}
	objects := []runtime.Object{
		clusterRole("cluster-admin", everything...), bound("cluster-admin", auth.Masters),
		clusterRole("system:discovery", urls(discovery...)...), bound("system:discovery", auth.Authenticated),
		clusterRole("system:basic-user", reviews...), bound("system:basic-user", auth.Authenticated),
		clusterRole("system:public-info-viewer", urls(health...)...),
		bound("system:public-info-viewer", auth.Authenticated, auth.Unauthenticated),
	}
	return append(objects, userRoles()...)
}

// userRoles are admin, edit and view, each made of the one below and of whatever is labelled to be part of it. They name the types
// that this server has.
func userRoles() []runtime.Object {
	aggregate := func(role string) map[string]string {
		return map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + role: "true"}
	}
	part := func(role string, rules ...rbacv1.PolicyRule) runtime.Object {
		r := clusterRole("system:aggregate-to-"+role, rules...)
		r.Labels = aggregate(role)
		return r
	}
	whole := func(role, partOf string) runtime.Object {
		r := clusterRole(role)
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: aggregate(role)}}}
		if partOf != "" {
			r.Labels = aggregate(partOf)
		}
		return r
	}
	return []runtime.Object{
		whole("admin", ""), whole("edit", "admin"), whole("view", "edit"),
		part("admin",
			rules("authorization.k8s.io", []string{"create"}, "localsubjectaccessreviews"),
			rules("rbac.authorization.k8s.io", append(readVerbs(), writeVerbs()...), "roles", "rolebindings"),
		),
		part("edit", editorRules()...),
		part("view", viewerRules()...),
	}
}

func readVerbs() []string { return []string{"get", "list", "watch"} }
func writeVerbs() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

// viewerRules is what does not lead to more rights.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go viewRules.
func viewerRules() []rbacv1.PolicyRule {
	view := func(group string, resources ...string) rbacv1.PolicyRule {
		return rules(group, readVerbs(), resources...)
	}
	return []rbacv1.PolicyRule{
		view("", "pods", "pods/status", "pods/log", "serviceaccounts", "services", "services/status", "endpoints",
			"persistentvolumeclaims", "persistentvolumeclaims/status", "configmaps", "bindings", "namespaces", "namespaces/status", "events",
			"limitranges", "resourcequotas", "resourcequotas/status",
			"replicationcontrollers", "replicationcontrollers/status", "replicationcontrollers/scale"),
		view("events.k8s.io", "events"),
		view("discovery.k8s.io", "endpointslices"),
		view("apps", "controllerrevisions", "statefulsets", "statefulsets/status", "statefulsets/scale", "daemonsets", "daemonsets/status",
			"deployments", "deployments/status", "deployments/scale", "replicasets", "replicasets/status", "replicasets/scale"),
		view("autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
		view("batch", "jobs", "jobs/status", "cronjobs", "cronjobs/status"),
		view("policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
		view("networking.k8s.io", "networkpolicies", "ingresses", "ingresses/status"),
	}
}

// editorRules is what a user of a namespace may do beyond looking: not write a status, nor endpoints.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go editRules.
func editorRules() []rbacv1.PolicyRule {
	edit := func(group string, resources ...string) rbacv1.PolicyRule {
		return rules(group, writeVerbs(), resources...)
	}
	return []rbacv1.PolicyRule{
		rules("", readVerbs(), "pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "secrets", "services/proxy"),
		edit("", "pods", "pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "serviceaccounts", "services", "services/proxy",
			"persistentvolumeclaims", "configmaps", "secrets", "events", "replicationcontrollers", "replicationcontrollers/scale"),
		edit("events.k8s.io", "events"),
		rules("", []string{"create"}, "pods/eviction", "serviceaccounts/token"),
		edit("apps", "statefulsets", "statefulsets/scale", "daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale"),
		edit("autoscaling", "horizontalpodautoscalers"),
		edit("batch", "jobs", "cronjobs"),
		edit("policy", "poddisruptionbudgets"),
		edit("networking.k8s.io", "networkpolicies", "ingresses"),
		rules("coordination.k8s.io", append(readVerbs(), writeVerbs()...), "leases"),
	}
}

func rules(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// bound binds a cluster role to groups, in a binding of its name.
func bound(role string, groups ...string) runtime.Object {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, group := range groups {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return b
}
