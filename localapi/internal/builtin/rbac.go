package builtin

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1" // the real server's tables show its documentation
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// rbacName accepts any name that can be part of a path, such as "system:masters".
func rbacName(name string, _ bool) []string { return content.IsPathSegmentName(name) }

func role() *resource.Definition {
	d := namespaced[rbacv1.Role, rbacv1.RoleList](rbacv1.SchemeGroupVersion, "roles")
	d.CreateOnUpdate = true
	d.ValidateName = rbacName
	d.Validate = check(func(r *rbacv1.Role) field.ErrorList { return validateRules(r.Rules, true) })
	printed(d, func(r *rbacv1.Role, _ time.Time) []cell { return roleColumns(&r.ObjectMeta) })
	return d
}

func clusterRole() *resource.Definition {
	d := typed[rbacv1.ClusterRole, rbacv1.ClusterRoleList](rbacv1.SchemeGroupVersion, "clusterroles")
	d.CreateOnUpdate = true
	d.ValidateName = rbacName
	d.Validate = check(validateClusterRole)
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

func validateClusterRole(r *rbacv1.ClusterRole) field.ErrorList {
	errs := validateRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		errs = append(errs,
			field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		s := &r.AggregationRule.ClusterRoleSelectors[i]
		errs = append(errs, labelSelector(s, path.Index(i))...)
	}
	return errs
}

// The errors of the real server's declarative rules (missing verbs, names) come after all others.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/rbac/validation/validation.go ValidatePolicyRule.
func validateRules(rules []rbacv1.PolicyRule, namespaced bool) (errs field.ErrorList) {
	for i := range rules {
		rule, path := &rules[i], field.NewPath("rules").Index(i)
		if urls := rule.NonResourceURLs; len(urls) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), urls,
					"namespaced rules cannot apply to non-resource URLs"))
			}
			if len(rule.APIGroups) > 0 || len(rule.Resources) > 0 || len(rule.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(path.Child("nonResourceURLs"), urls,
					"rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			errs = append(errs,
				field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(rule.Resources) == 0 {
			errs = append(errs,
				field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	for i := range rules {
		if len(rules[i].Verbs) == 0 {
			errs = append(errs, field.Required(field.NewPath("rules").Index(i).Child("verbs"), ""))
		}
	}
	return errs
}

func roleBinding() *resource.Definition {
	d := namespaced[rbacv1.RoleBinding, rbacv1.RoleBindingList](rbacv1.SchemeGroupVersion, "rolebindings")
	bindingRules(d, func(b *rbacv1.RoleBinding) binding {
		return binding{&b.ObjectMeta, &b.RoleRef, b.Subjects, rbacv1beta1.RoleBinding{}.SwaggerDoc(), "roleBinding"}
	}, "Role", "ClusterRole")
	return d
}

func clusterRoleBinding() *resource.Definition {
	d := typed[rbacv1.ClusterRoleBinding, rbacv1.ClusterRoleBindingList](rbacv1.SchemeGroupVersion,
		"clusterrolebindings")
	bindingRules(d, func(b *rbacv1.ClusterRoleBinding) binding {
		return binding{
			&b.ObjectMeta, &b.RoleRef, b.Subjects, rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc(), "clusterRoleBinding",
		}
	}, "ClusterRole")
	return d
}

// binding is what the two kinds of bindings share.
type binding struct {
	meta     *metav1.ObjectMeta
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
	d.Validate = check(func(obj P) field.ErrorList {
		b := of(obj)
		return validateBindingTo(*b.role, b.subjects, kinds...)
	})
	d.ValidateUpdate = compare(func(obj, old P) field.ErrorList { return sameRole(*of(obj).role, *of(old).role) })
	printed(d, func(obj P, now time.Time) []cell { return of(obj).columns(now) })
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/rbac/v1/defaults.go.
func defaultBinding(b binding) {
	setDefault(&b.role.APIGroup, rbacv1.GroupName)
	for i := range b.subjects {
		if s := &b.subjects[i]; s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			setDefault(&s.APIGroup, rbacv1.GroupName)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/rbac/validation/validation.go ValidateRoleBinding.
func validateBindingTo(ref rbacv1.RoleRef, subjects []rbacv1.Subject, kinds ...string) field.ErrorList {
	path := field.NewPath("roleRef")
	errs := oneOf(path.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)
	errs = append(errs, oneOf(path.Child("kind"), ref.Kind, kinds...)...)
	if ref.Name != "" {
		errs = append(errs, invalid(path.Child("name"), ref.Name, rbacName(ref.Name, false))...)
	}
	namespaced := len(kinds) > 1
	for i := range subjects {
		errs = append(errs, validateSubject(&subjects[i], namespaced, field.NewPath("subjects").Index(i))...)
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	for i := range subjects {
		if subjects[i].Name == "" {
			errs = append(errs, field.Required(field.NewPath("subjects").Index(i).Child("name"), ""))
		}
	}
	return errs
}

func sameRole(ref, old rbacv1.RoleRef) field.ErrorList {
	if ref == old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), shown(ref), apivalidation.FieldImmutableErrorMsg)}
}

func validateSubject(s *rbacv1.Subject, namespaced bool, path *field.Path) (errs field.ErrorList) {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			errs = append(errs,
				invalid(path.Child("name"), s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))...)
		}
		if s.APIGroup != "" {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{""}))
		}
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, oneOf(path.Child("apiGroup"), s.APIGroup, rbacv1.GroupName)...)
	default:
		errs = append(errs, field.NotSupported(path.Child("kind"), s.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	return errs
}

func (b binding) columns(now time.Time) []cell {
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
		nameColumn(b.meta.Name),
		column("Role", "string", b.doc["roleRef"], b.role.Kind+"/"+b.role.Name),
		ageColumn(b.meta.CreationTimestamp, now),
		wideColumn("Users", "string", "Users in the "+b.name, of(rbacv1.UserKind)),
		wideColumn("Groups", "string", "Groups in the "+b.name, of(rbacv1.GroupKind)),
		wideColumn("ServiceAccounts", "string", "ServiceAccounts in the "+b.name, of(rbacv1.ServiceAccountKind)),
	}
}
