package builtin

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1" // the real server's tables show its documentation
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// rbacName accepts any name that can be part of a path, such as "system:masters".
func rbacName(name string, _ bool) []string { return content.IsPathSegmentName(name) }

func role() *resource.Definition {
	d := namespaced[rbacv1.Role, rbacv1.RoleList](rbacv1.SchemeGroupVersion, "roles")
	d.CreateOnUpdate = true
	d.ValidateName = rbacName
	d.Validate = rules(func(f verify.Field, r *rbacv1.Role) { validateRules(f, r.Rules, true) })
	printed(d, func(r *rbacv1.Role, _ time.Time) []cell { return roleColumns(&r.ObjectMeta) })
	return d
}

func clusterRole() *resource.Definition {
	d := typed[rbacv1.ClusterRole, rbacv1.ClusterRoleList](rbacv1.SchemeGroupVersion, "clusterroles")
	d.CreateOnUpdate = true
	d.ValidateName = rbacName
	d.Validate = rules(validateClusterRole)
	printed(d, func(r *rbacv1.ClusterRole, _ time.Time) []cell { return roleColumns(&r.ObjectMeta) })
	return d
}

func roleColumns(m *metav1.ObjectMeta) []cell {
	return []cell{
		nameColumn(m.Name),
		column("Created At", "date", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
			m.CreationTimestamp.UTC().Format(time.RFC3339)),
	}
}

func validateClusterRole(f verify.Field, r *rbacv1.ClusterRole) {
	validateRules(f, r.Rules, false)
	if r.AggregationRule != nil {
		selectors := r.AggregationRule.ClusterRoleSelectors
		f.Require("aggregationRule.clusterRoleSelectors", len(selectors) > 0,
			"at least one clusterRoleSelector required if aggregationRule is non-nil")
		verify.Each(f, "aggregationRule.clusterRoleSelectors", selectors,
			func(f verify.Field, s *metav1.LabelSelector) { f.LabelSelector("", s) })
	}
}

// The errors of the real server's declarative rules (missing verbs, names) come after all others.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/rbac/validation/validation.go ValidatePolicyRule.
func validateRules(f verify.Field, all []rbacv1.PolicyRule, namespaced bool) {
	verify.Each(f, "rules", all, func(f verify.Field, rule *rbacv1.PolicyRule) {
		if urls := rule.NonResourceURLs; len(urls) > 0 {
			f.Reject("nonResourceURLs", namespaced, urls, "namespaced rules cannot apply to non-resource URLs")
			f.Reject("nonResourceURLs", len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0, urls,
				"rules cannot apply to both regular resources and non-resource URLs")
			return
		}
		f.Require("apiGroups", len(rule.APIGroups) > 0, "resource rules must supply at least one api group")
		f.Require("resources", len(rule.Resources) > 0, "resource rules must supply at least one resource")
	})
	verify.Each(f, "rules", all, func(f verify.Field, rule *rbacv1.PolicyRule) {
		f.Require("verbs", len(rule.Verbs) > 0, "")
	})
}

func roleBinding() *resource.Definition {
	d := namespaced[rbacv1.RoleBinding, rbacv1.RoleBindingList](rbacv1.SchemeGroupVersion, "rolebindings")
	bindingRules(d, func(b *rbacv1.RoleBinding) binding {
		return binding{&b.RoleRef, b.Subjects, rbacv1beta1.RoleBinding{}.SwaggerDoc(), "roleBinding"}
	}, "Role", "ClusterRole")
	return d
}

func clusterRoleBinding() *resource.Definition {
	d := typed[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](rbacv1.SchemeGroupVersion,
		"clusterrolebindings")
	bindingRules(d, func(b *rbacv1.ClusterRoleBinding) binding {
		return binding{
			&b.RoleRef, b.Subjects, rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc(), "clusterRoleBinding",
		}
	}, "ClusterRole")
	return d
}

// binding is what the two kinds of bindings share.
type binding struct {
	role     *rbacv1.RoleRef
	subjects []rbacv1.Subject
	doc      map[string]string
	name     string // of the kind, in its table
}

// bindingRules adds the rules of bindings to roles of the given kinds.
func bindingRules[T any, P pointerTo[T]](d *resource.Definition, of func(P) binding, kinds ...string) {
	d.CreateOnUpdate = true
	d.ValidateName = rbacName
	d.Default = mutate(func(obj P) { defaultBinding(of(obj)) })
	d.Validate = rules(func(f verify.Field, obj P) { validateBindingTo(f, of(obj), kinds...) })
	d.ValidateUpdate = updateRules(func(f verify.Field, obj, old P) {
		immutableShown(f, "roleRef", *of(obj).role, *of(old).role)
	})
	listed(d, func(obj P) []cell { return of(obj).columns() })
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/rbac/v1/defaults.go.
func defaultBinding(b binding) {
	setDefault(&b.role.APIGroup, rbacv1.GroupName)
	for i := range b.subjects {
		if s := &b.subjects[i]; s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			setDefault(&s.APIGroup, rbacv1.GroupName)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/rbac/validation/validation.go ValidateRoleBinding.
func validateBindingTo(f verify.Field, b binding, kinds ...string) {
	ref := b.role
	verify.OneOf(f, "roleRef.apiGroup", ref.APIGroup, rbacv1.GroupName)
	verify.OneOf(f, "roleRef.kind", ref.Kind, kinds...)
	f.MatchIfSet("roleRef.name", ref.Name, content.IsPathSegmentName)
	namespaced := len(kinds) > 1
	verify.Each(f, "subjects", b.subjects, func(f verify.Field, s *rbacv1.Subject) {
		validateSubject(f, s, namespaced)
	})
	f.Require("roleRef.name", ref.Name != "", "")
	verify.Each(f, "subjects", b.subjects, func(f verify.Field, s *rbacv1.Subject) {
		f.Require("name", s.Name != "", "")
	})
}

func validateSubject(f verify.Field, s *rbacv1.Subject, namespaced bool) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		f.MatchIfSet("name", s.Name, validation.IsDNS1123Subdomain)
		verify.Supported(f, "apiGroup", s.APIGroup, "")
		f.Require("namespace", namespaced || s.Namespace != "", "")
	case rbacv1.UserKind, rbacv1.GroupKind:
		verify.OneOf(f, "apiGroup", s.APIGroup, rbacv1.GroupName)
	default:
		verify.Supported(f, "kind", s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
	}
}

func (b binding) columns() []cell {
	named := map[string][]string{}
	for i := range b.subjects {
		name := b.subjects[i].Name
		if b.subjects[i].Kind == rbacv1.ServiceAccountKind {
			name = b.subjects[i].Namespace + "/" + name
		}
		named[b.subjects[i].Kind] = append(named[b.subjects[i].Kind], name)
	}
	of := func(kind string) string { return strings.Join(named[kind], ", ") }
	return []cell{
		column("Role", "string", b.doc["roleRef"], b.role.Kind+"/"+b.role.Name),
		wideColumn("Users", "string", "Users in the "+b.name, of(rbacv1.UserKind)),
		wideColumn("Groups", "string", "Groups in the "+b.name, of(rbacv1.GroupKind)),
		wideColumn("ServiceAccounts", "string", "ServiceAccounts in the "+b.name, of(rbacv1.ServiceAccountKind)),
	}
}
