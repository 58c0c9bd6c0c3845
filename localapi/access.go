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
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
)

// RESTConfigFor is like [Server.RESTConfig], but the client acts as user u. With [Options.RBAC], the roles bound to u
// decide what it may do.
func (s *Server) RESTConfigFor(u auth.User) *rest.Config {
	u = u.Known()
	return &rest.Config{Host: memoryHost, Transport: transport{server: s, user: &u}, QPS: -1}
}

// coreObject returns an object of the core group, or NotFound if the server does not serve its type.
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

// issued returns a function that maps the issuer's tokens to their users. It accepts only tokens meant for this server.
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
	return find[*rbacv1.Role](s.resource("roles"), "roles", namespace, name)
}

// ClusterRole implements rbac.Roles.
func (s storedRoles) ClusterRole(name string) (*rbacv1.ClusterRole, error) {
	return find[*rbacv1.ClusterRole](s.resource("clusterroles"), "clusterroles", "", name)
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

// find returns a stored object. Errors: NotFound.
func find[T runtime.Object](r *registry.Resource, plural, namespace, name string) (T, error) {
	var none T
	if r == nil {
		return none, apierrors.NewNotFound(rbacv1.Resource(plural), name)
	}
	o, err := r.Get(context.Background(), namespace, name, "")
	if err != nil {
		return none, err
	}
	return o.Object.(T), nil
}

// all returns the stored objects of a namespace, or those of all namespaces.
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
