package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/localapi/auth"
)

// Attributes are what a rule is matched against: a verb on a resource, or on a path that is none.
type Attributes struct {
	Verb                         string
	Group, Resource, Subresource string
	Namespace, Name              string
	Path                         string // of a request that is not about a resource
	NonResource                  bool
}

// Allows reports whether a rule covers a request.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/auth/authorizer/rbac/rbac.go RuleAllows, pkg/apis/rbac/v1/evaluation_helpers.go.
func Allows(rule *rbacv1.PolicyRule, a Attributes) bool {
	if !contains(rule.Verbs, rbacv1.VerbAll, a.Verb) {
		return false
	}
	if a.NonResource {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
			prefix, open := strings.CutSuffix(url, "*")
			return url == a.Path || open && strings.HasPrefix(a.Path, prefix)
		})
	}
	return contains(rule.APIGroups, rbacv1.APIGroupAll, a.Group) && coversResource(rule, a) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

func contains(list []string, all, value string) bool {
	return slices.Contains(list, all) || slices.Contains(list, value)
}

func coversResource(rule *rbacv1.PolicyRule, a Attributes) bool {
	if a.Subresource == "" {
		return contains(rule.Resources, rbacv1.ResourceAll, a.Resource)
	}
	return contains(rule.Resources, rbacv1.ResourceAll, a.Resource+"/"+a.Subresource) || slices.Contains(rule.Resources, "*/"+a.Subresource)
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
