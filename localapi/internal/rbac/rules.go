package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/localapi/auth"
)

// Attributes are matched against a rule: a verb on a resource, or on a path outside resources.
type Attributes struct {
	Verb                         string
	Group, Resource, Subresource string
	Namespace, Name              string
	Path                         string // of a request outside resources
	NonResource                  bool
}

// Allows reports whether a rule covers a request.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/auth/authorizer/rbac/rbac.go RuleAllows,
// pkg/apis/rbac/v1/evaluation_helpers.go.
func Allows(rule *rbacv1.PolicyRule, a Attributes) bool {
	if !contains(rule.Verbs, rbacv1.VerbAll, a.Verb) {
		return false
	}
	if a.NonResource {
		return coversURL(rule.NonResourceURLs, a.Path)
	}
	return contains(rule.APIGroups, rbacv1.APIGroupAll, a.Group) &&
		coversResource(rule.Resources, a.Resource, a.Subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

func contains(list []string, all, value string) bool {
	return slices.Contains(list, all) || slices.Contains(list, value)
}

// coversResource reports whether a rule's resources include a resource, or its subresource if that is not empty.
func coversResource(list []string, resource, subresource string) bool {
	if subresource == "" {
		return contains(list, rbacv1.ResourceAll, resource)
	}
	return contains(list, rbacv1.ResourceAll, resource+"/"+subresource) || slices.Contains(list, "*/"+subresource)
}

// coversURL reports whether a rule's paths include a path. A path that ends in a star includes all that begin with it.
func coversURL(list []string, path string) bool {
	return slices.ContainsFunc(list, func(url string) bool {
		return url == path || strings.HasSuffix(url, "*") && strings.HasPrefix(path, strings.TrimRight(url, "*"))
	})
}

// appliesTo reports whether one of a binding's subjects is the user. namespace is the binding's.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/rbac/validation/rule.go appliesToUser.
func appliesTo(u auth.User, subjects []rbacv1.Subject, namespace string) (*rbacv1.Subject, bool) {
	for i := range subjects {
		s := &subjects[i]
		switch s.Kind {
		case rbacv1.UserKind:
			if s.Name == u.Name {
				return s, true
			}
		case rbacv1.GroupKind:
			if slices.Contains(u.Groups, s.Name) {
				return s, true
			}
		case rbacv1.ServiceAccountKind:
			home := namespace
			if s.Namespace != "" {
				home = s.Namespace
			}
			if home != "" && u.Name == auth.ServiceAccount(home, s.Name).Name {
				return s, true
			}
		}
	}
	return nil, false
}
