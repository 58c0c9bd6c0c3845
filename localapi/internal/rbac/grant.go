package rbac

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// CheckGrant rejects the write of a role or binding by which a user would grant more than the user has. The rules of a
// role must be the author's own, unless the author may "escalate" it. So must the rules of a role that is bound, unless
// the author may "bind" it. a is the request, and old the stored object, or nil if there is none. Objects of other
// types pass.
//
// Errors: Forbidden; those of the search for the role that is to be bound.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac, escalation_check.go and */policybased/storage.go.
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac/validation/rule.go ConfirmNoEscalation.
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
	if err == nil {
		return nil
	}
	return apierrors.NewForbidden(rbacv1.Resource(g.request.Resource), resource.Meta(g.obj).GetName(), err)
}

// forTheCollector reports whether the write changes only what a garbage collector has to change.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac/helpers.go IsOnlyMutatingGCFields.
func (g *grant) forTheCollector() bool {
	if g.old == nil {
		return false
	}
	same := g.obj.DeepCopyObject()
	m, was := resource.Meta(same), resource.Meta(g.old)
	m.SetOwnerReferences(was.GetOwnerReferences())
	m.SetFinalizers(was.GetFinalizers())
	m.SetSelfLink(was.GetSelfLink())
	m.SetManagedFields(was.GetManagedFields())
	same.GetObjectKind().SetGroupVersionKind(g.old.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepEqual(same, g.old)
}

// permission is the smallest possible rule: one verb on one resource, with one name or none, or on one path outside
// resources.
type permission struct {
	verb, group, resource, name string
	named                       bool
	url                         string // if set, only the verb is set besides
}

// uncovered returns the permissions of asked that held does not include. A single rule of held must include a
// permission as a whole.
//
// Source: k8s.io/component-helpers v0.37.2 auth/rbac/validation/policy_comparator.go Covers.
func uncovered(held, asked []rbacv1.PolicyRule) []permission {
	var missing []permission
	for _, rule := range asked {
		for _, p := range permissions(&rule) {
			if !slices.ContainsFunc(held, p.in) {
				missing = append(missing, p)
			}
		}
	}
	return missing
}

// permissions returns everything that a rule gives. The loops nest as the real server's do, because the order shows in
// messages.
func permissions(rule *rbacv1.PolicyRule) (all []permission) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				p := permission{verb: verb, group: group, resource: resource}
				if len(rule.ResourceNames) == 0 {
					all = append(all, p)
				}
				for _, p.name = range rule.ResourceNames {
					p.named = true
					all = append(all, p)
				}
			}
		}
	}
	for _, url := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			all = append(all, permission{verb: verb, url: url})
		}
	}
	return all
}

// in reports whether a rule includes the permission.
func (p permission) in(rule rbacv1.PolicyRule) bool {
	if !contains(rule.Verbs, rbacv1.VerbAll, p.verb) {
		return false
	}
	if p.url != "" {
		// In the real server, the names of a rule restrict everything that it gives, including paths.
		return len(rule.ResourceNames) == 0 && coversURL(rule.NonResourceURLs, p.url)
	}
	resource, subresource, _ := strings.Cut(p.resource, "/")
	return contains(rule.APIGroups, rbacv1.APIGroupAll, p.group) &&
		coversResource(rule.Resources, resource, subresource) &&
		(len(rule.ResourceNames) == 0 || p.named && slices.Contains(rule.ResourceNames, p.name))
}

// describeAll describes permissions, with a line for each resource and each path.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/rbac/validation/policy_compact.go,
// pkg/apis/rbac/v1/evaluation_helpers.go CompactString.
func describeAll(missing []permission) string {
	lines := map[string]bool{}
	verbs := map[permission][]string{} // of one resource
	for _, p := range missing {
		if p.url != "" {
			lines[fmt.Sprintf("{NonResourceURLs:[%q], Verbs:[%q]}", p.url, p.verb)] = true
			continue
		}
		of := p
		of.verb = ""
		verbs[of] = append(verbs[of], p.verb)
	}
	for of, verbs := range verbs {
		line := fmt.Sprintf("{APIGroups:[%q], Resources:[%q]", of.group, of.resource)
		if of.named {
			line += fmt.Sprintf(", ResourceNames:[%q]", of.name)
		}
		lines[line+fmt.Sprintf(", Verbs:%q}", verbs)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
}

// CheckSigning rejects a write by which a certificate is approved, denied or issued, unless the user may do that for
// its signer: the user needs "approve" or "sign" on the resource "signers" of that name, or of its domain
// ("example.com/*"). It rejects requests for client certificates of members of system:masters from any user. a is the
// request, and old the stored object, or nil if there is none. Objects of other types pass.
//
// Errors: Forbidden.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/certificates: approval, signing, subjectrestriction.
func (z *Authorizer) CheckSigning(u auth.User, a Attributes, obj, old runtime.Object) error {
	r, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	was, _ := old.(*certificatesv1.CertificateSigningRequest)
	var verb string
	switch {
	case was == nil:
		return checkSubject(a, r)
	case a.Subresource == "approval":
		verb = "approve"
	case a.Subresource == "status" && issues(r, was):
		verb = "sign"
	default:
		return nil
	}
	if z.maySign(u, verb, was.Spec.SignerName) {
		return nil
	}
	return signingForbidden(a, r,
		fmt.Errorf("user not permitted to %s requests with signerName %q", verb, was.Spec.SignerName))
}

// issues reports whether a write of the status is one that only a signer may do.
func issues(r, was *certificatesv1.CertificateSigningRequest) bool {
	return !reflect.DeepEqual(r.Status.Certificate, was.Status.Certificate) ||
		!equality.Semantic.DeepEqual(r.Status.Conditions, was.Status.Conditions)
}

// maySign reports whether a user has one of the verbs for signers.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/certauthorization.
func (z *Authorizer) maySign(u auth.User, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return slices.ContainsFunc([]string{signer, domain + "/*"}, func(name string) bool {
		allowed, _ := z.Authorize(u,
			Attributes{Verb: verb, Group: certificatesv1.GroupName, Resource: "signers", Name: name})
		return allowed
	})
}

// checkSubject checks a new request, which is known to be valid.
func checkSubject(a Attributes, r *certificatesv1.CertificateSigningRequest) error {
	block, _ := pem.Decode(r.Spec.Request)
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || block == nil {
		return nil
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	// a user's organizations are its groups
	if err != nil || !slices.Contains(parsed.Subject.Organization, auth.Masters) {
		return err
	}
	return signingForbidden(a, r,
		fmt.Errorf("use of %s signer with %s group is not allowed", r.Spec.SignerName, auth.Masters))
}

func signingForbidden(a Attributes, r *certificatesv1.CertificateSigningRequest, err error) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, r.Name, err)
}
