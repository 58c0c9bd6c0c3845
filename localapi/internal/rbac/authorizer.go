package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/localapi/auth"
)

// Roles gives access to roles and bindings. The objects returned are read-only. For a missing role, it returns the
// NotFound error of the role's resource.
type Roles interface {
	Role(namespace, name string) (*rbacv1.Role, error)
	ClusterRole(name string) (*rbacv1.ClusterRole, error)
	ClusterRoles() ([]*rbacv1.ClusterRole, error)
	RoleBindings(namespace string) ([]*rbacv1.RoleBinding, error)
	ClusterRoleBindings() ([]*rbacv1.ClusterRoleBinding, error)
}

// Authorizer decides what users may do. A nil *Authorizer allows everything.
type Authorizer struct{ Roles Roles }

// Authorize reports whether a user may do something. reason is why, or what prevented a full check.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/auth/authorizer/rbac/rbac.go.
func (z *Authorizer) Authorize(u auth.User, a Attributes) (allowed bool, reason string) {
	if z == nil || slices.Contains(u.Groups, auth.Masters) {
		return true, ""
	}
	var errs []error
	z.visit(u, a.Namespace, func(source string, rules []rbacv1.PolicyRule, err error) bool {
		if err != nil {
			errs = append(errs, bySingular(err))
		}
		for i := range rules {
			if Allows(&rules[i], a) {
				allowed, reason = true, "RBAC: allowed by "+source
				return false
			}
		}
		return true
	})
	if !allowed && len(errs) > 0 {
		reason = fmt.Sprintf("rbac: RBAC: %v", utilerrors.NewAggregate(errs))
	}
	return allowed, reason
}

// Check returns an error if a user may not do something. Errors: Forbidden.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters/errors.go ForbiddenStatusError.
func (z *Authorizer) Check(u auth.User, a Attributes) error {
	allowed, reason := z.Authorize(u, a)
	if allowed {
		return nil
	}
	return Forbidden(u, a, reason)
}

// everything is the set of rules that applies if nothing is checked.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// RulesFor returns a user's rules in a namespace.
func (z *Authorizer) RulesFor(u auth.User, namespace string) ([]rbacv1.PolicyRule, error) {
	if z == nil {
		return everything, nil
	}
	var all []rbacv1.PolicyRule
	if slices.Contains(u.Groups, auth.Masters) {
		all = append(all, everything...)
	}
	bound, errs := z.bound(u, namespace)
	for i, err := range errs {
		errs[i] = bySingular(err)
	}
	return append(all, bound...), utilerrors.NewAggregate(errs)
}

// bound returns the rules that bindings give a user in a namespace, and the errors that prevented finding all of them.
func (z *Authorizer) bound(u auth.User, namespace string) (all []rbacv1.PolicyRule, errs []error) {
	z.visit(u, namespace, func(_ string, rules []rbacv1.PolicyRule, err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, rules...)
		return true
	})
	return all, errs
}

// bySingular names a missing role as the real server's authorizer does, whose cache does not know the plural.
func bySingular(err error) error {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		return missingAs(strings.TrimSuffix(status.ErrStatus.Details.Kind, "s"), err)
	}
	return err
}

// missingAs returns err with another resource if it is the NotFound of a role.
func missingAs(resource string, err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || status.ErrStatus.Details == nil {
		return err
	}
	return apierrors.NewNotFound(rbacv1.Resource(resource), status.ErrStatus.Details.Name)
}

// visit calls visit with the rules of each binding that concerns the user, the cluster's first, until visit returns
// false.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac/validation/rule.go VisitRulesFor.
func (z *Authorizer) visit(u auth.User, namespace string,
	visit func(source string, rules []rbacv1.PolicyRule, err error) bool,
) {
	bindings, err := z.Roles.ClusterRoleBindings()
	if err != nil && !visit("", nil, err) {
		return
	}
	for _, b := range bindings {
		subject, ok := appliesTo(u, b.Subjects, "")
		if !ok {
			continue
		}
		rules, err := z.rulesOf(b.RoleRef, "")
		source := fmt.Sprintf("ClusterRoleBinding %q of %s %q to %s", b.Name, b.RoleRef.Kind, b.RoleRef.Name,
			describe(subject, ""))
		if !visit(source, rules, err) {
			return
		}
	}
	if namespace == "" {
		return
	}
	local, err := z.Roles.RoleBindings(namespace)
	if err != nil && !visit("", nil, err) {
		return
	}
	for _, b := range local {
		subject, ok := appliesTo(u, b.Subjects, namespace)
		if !ok {
			continue
		}
		rules, err := z.rulesOf(b.RoleRef, namespace)
		source := fmt.Sprintf("RoleBinding %q of %s %q to %s", b.Name+"/"+b.Namespace, b.RoleRef.Kind, b.RoleRef.Name,
			describe(subject, namespace))
		if !visit(source, rules, err) {
			return
		}
	}
}

func describe(s *rbacv1.Subject, namespace string) string {
	if s.Kind != rbacv1.ServiceAccountKind {
		return fmt.Sprintf("%s %q", s.Kind, s.Name)
	}
	if s.Namespace != "" {
		namespace = s.Namespace
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Name+"/"+namespace)
}

func (z *Authorizer) rulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	switch ref.Kind {
	case "Role":
		role, err := z.Roles.Role(namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		return role.Rules, nil
	case "ClusterRole":
		role, err := z.Roles.ClusterRole(ref.Name)
		if err != nil {
			return nil, err
		}
		return z.aggregated(role)
	}
	return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
}

// aggregated returns a cluster role's rules. A role without an aggregation rule has its own rules. Otherwise the result
// is the rules of the roles that it selects, recursively, and not its own. (In a cluster, a controller writes them into
// the role in place of any others; here they are looked up.)
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/clusterroleaggregation.
func (z *Authorizer) aggregated(role *rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	if role.AggregationRule == nil {
		return role.Rules, nil
	}
	all, err := z.Roles.ClusterRoles()
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	seen := map[string]bool{role.Name: true}
	for open := []*rbacv1.ClusterRole{role}; len(open) > 0; open = open[1:] {
		parts, err := partsOf(open[0], all)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if !seen[part.Name] {
				seen[part.Name] = true
				if part.AggregationRule == nil {
					rules = append(rules, part.Rules...)
				}
				open = append(open, part)
			}
		}
	}
	return rules, nil
}

// partsOf returns the roles that a role's aggregation rule selects.
func partsOf(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]*rbacv1.ClusterRole, error) {
	if role.AggregationRule == nil {
		return nil, nil
	}
	var parts []*rbacv1.ClusterRole
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, errors.Join(err, fmt.Errorf("aggregation rule of %q", role.Name))
		}
		for _, part := range all {
			if selector.Matches(labels.Set(part.Labels)) {
				parts = append(parts, part)
			}
		}
	}
	return parts, nil
}

// Forbidden returns the error for a user that may not do something.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters/errors.go forbiddenMessage.
func Forbidden(u auth.User, a Attributes, reason string) error {
	var message string
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	switch {
	case a.NonResource:
		message = fmt.Sprintf("User %q cannot %s path %q", u.Name, a.Verb, a.Path)
	case a.Namespace != "":
		message = fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", u.Name, a.Verb,
			resource, a.Group, a.Namespace)
	default:
		message = fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", u.Name, a.Verb,
			resource, a.Group)
	}
	message = Sanitize(message)
	if reason != "" {
		message += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
		errors.New(message))
}

// Sanitize prevents a message that repeats what a client sent from being read as HTML.
func Sanitize(message string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(message)
}

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
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/auth/authorizer/rbac/rbac.go RuleAllows,
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac/validation/rule.go appliesToUser.
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
