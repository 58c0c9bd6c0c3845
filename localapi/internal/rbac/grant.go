package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/localapi/auth"
)

// CheckGrant rejects the write of a role or binding by which a user would grant more than the user has. The rules of a
// role must be the author's own, unless the author may "escalate" it. So must the rules of a role that is bound, unless
// the author may "bind" it. a is the request, and old the stored object, or nil if there is none. Objects of other
// types pass.
//
// Errors: Forbidden; those of the search for the role that is to be bound.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/rbac, escalation_check.go and */policybased/storage.go.
func (z *Authorizer) CheckGrant(u auth.User, a Attributes, obj, old runtime.Object) error {
	if z == nil || slices.Contains(u.Groups, auth.Masters) {
		return nil
	}
	g := grant{Authorizer: z, user: u, request: a, obj: obj, old: old}
	switch o := obj.(type) {
	case *rbacv1.Role:
		return g.role(o.Rules)
	case *rbacv1.ClusterRole:
		return g.clusterRole(o)
	case *rbacv1.RoleBinding:
		return g.binding(o.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		return g.binding(o.RoleRef)
	}
	return nil
}

// grant is a write that grants rights.
type grant struct {
	*Authorizer
	user     auth.User
	request  Attributes
	obj, old runtime.Object
}

// role checks a role with these rules.
func (g *grant) role(rules []rbacv1.PolicyRule) error {
	if g.may("escalate", g.request.Resource, g.request.Name) || g.forTheCollector() {
		return nil
	}
	return g.forbidden(g.confirm(rules))
}

func (g *grant) clusterRole(r *rbacv1.ClusterRole) error {
	if err := g.role(r.Rules); err != nil {
		return err
	}
	old, _ := g.old.(*rbacv1.ClusterRole)
	if !aggregates(r) && !aggregates(old) || g.may("escalate", g.request.Resource, g.request.Name) ||
		g.forTheCollector() {
		return nil
	}
	if g.confirm(everything) != nil {
		return g.forbidden(errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

func aggregates(r *rbacv1.ClusterRole) bool {
	return r != nil && r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

// binding checks a binding to a role.
func (g *grant) binding(ref rbacv1.RoleRef) error {
	if g.forTheCollector() || g.mayBind(ref) {
		return nil
	}
	if err := g.findable(ref); err != nil {
		return err
	}
	rules, err := g.rulesOf(ref, g.request.Namespace)
	if err != nil {
		return g.byRequest(err)
	}
	return g.forbidden(g.confirm(rules))
}

// findable rejects the name of a role that cannot be stored, before it is looked up. Validation reports other errors of
// a binding later.
//
// Source: k8s.io/apiserver v0.37.2 pkg/registry/generic/registry/store.go NamespaceKeyFunc.
func (g *grant) findable(ref rbacv1.RoleRef) error {
	problems := content.IsPathSegmentName(ref.Name)
	switch {
	case ref.Kind == "Role" && g.request.Namespace == "":
		return apierrors.NewBadRequest("Namespace parameter required.")
	case ref.Kind != "Role" && ref.Kind != "ClusterRole":
		return nil
	case ref.Name == "":
		return apierrors.NewBadRequest("Name parameter required.")
	case len(problems) > 0:
		return apierrors.NewBadRequest(
			fmt.Sprintf("Name parameter invalid: %q: %s", ref.Name, strings.Join(problems, ";")),
		)
	}
	return nil
}

func (g *grant) mayBind(ref rbacv1.RoleRef) bool {
	resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[ref.Kind]
	return resource != "" && ref.APIGroup == rbacv1.GroupName && g.may("bind", resource, ref.Name)
}

// may reports whether the user has one of the two verbs that make the check of rules unnecessary.
func (g *grant) may(verb, resource, name string) bool {
	allowed, _ := g.Authorize(g.user, Attributes{
		Verb: verb, Group: rbacv1.GroupName, Resource: resource, Namespace: g.request.Namespace, Name: name,
	})
	return allowed
}

// confirm returns an error with the rules that the user does not have.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/rbac/validation/rule.go ConfirmNoEscalation.
func (g *grant) confirm(rules []rbacv1.PolicyRule) error {
	held, errs := g.bound(g.user, g.request.Namespace)
	for i, err := range errs {
		errs[i] = g.byRequest(err)
	}
	missing := uncovered(held, rules)
	if len(missing) == 0 {
		return nil
	}
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		g.user.Name, g.user.Groups, describeAll(missing))
	if len(errs) > 0 {
		message += fmt.Sprintf("; resolution errors: %v", []error{utilerrors.NewAggregate(errs)})
	}
	return errors.New(message)
}

// byRequest names a missing role as the real server does. Its storage takes the resource's name from the request in
// whose course it looks for the role.
//
// Source: k8s.io/apiserver v0.37.2 pkg/registry/generic/registry/store.go qualifiedResourceFromContext.
func (g *grant) byRequest(err error) error { return missingAs(g.request.Resource, err) }

func (g *grant) forbidden(err error) error {
	m, unnamed := meta.Accessor(g.obj)
	if err == nil || unnamed != nil {
		return errors.Join(err, unnamed)
	}
	return apierrors.NewForbidden(rbacv1.Resource(g.request.Resource), m.GetName(), err)
}

// forTheCollector reports whether the write changes only what a garbage collector has to change.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/rbac/helpers.go IsOnlyMutatingGCFields.
func (g *grant) forTheCollector() bool {
	if g.old == nil {
		return false
	}
	same := g.obj.DeepCopyObject()
	m, err := meta.Accessor(same)
	if err != nil {
		return false
	}
	was, err := meta.Accessor(g.old)
	if err != nil {
		return false
	}
	m.SetOwnerReferences(was.GetOwnerReferences())
	m.SetFinalizers(was.GetFinalizers())
	m.SetSelfLink(was.GetSelfLink())
	m.SetManagedFields(was.GetManagedFields())
	same.GetObjectKind().SetGroupVersionKind(g.old.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepEqual(same, g.old)
}
