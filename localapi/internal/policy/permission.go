package policy

import (
	"context"
	"fmt"
	"slices"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// Permission rejects policies and bindings that would read parameters for a user that may not read them.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/admissionregistration, authz.go of the four kinds.
type Permission struct{ Options }

var _ admission.Plugin = (*Permission)(nil)

// Idle implements [admission.Plugin].
func (p *Permission) Idle(r schema.GroupResource) bool {
	return p.Authorizer == nil || r.Group != registrationv1.GroupName
}

// Mutate implements [admission.Plugin].
func (p *Permission) Mutate(context.Context, *admission.Attributes) error { return nil }

// Validate implements [admission.Plugin].
func (p *Permission) Validate(ctx context.Context, a *admission.Attributes) error {
	if p.Idle(a.Resource.GroupResource()) || a.Subresource != "" || slices.Contains(a.User.Groups, auth.Masters) {
		return nil
	}
	what, refusal := "paramKind", ""
	switch obj := a.Object.(type) {
	case *registrationv1.ValidatingAdmissionPolicy, *registrationv1.MutatingAdmissionPolicy:
		refusal = p.refuseKind(&a.User, asMutating(obj), asMutating(a.OldObject))
	case *registrationv1.ValidatingAdmissionPolicyBinding:
		what, refusal = "paramRef", p.refuseParams(ctx, &a.User, "ValidatingAdmissionPolicy",
			expressions.AsMutatingBinding(obj))
	case *registrationv1.MutatingAdmissionPolicyBinding:
		what, refusal = "paramRef", p.refuseParams(ctx, &a.User, "MutatingAdmissionPolicy", obj)
	}
	if refusal == "" {
		return nil
	}
	return apierrors.NewInvalid(a.Kind.GroupKind(), a.Name,
		field.ErrorList{field.Forbidden(field.NewPath("spec", what), refusal)})
}

// asMutating returns a policy in the form of a mutating one, or nil if obj is none.
func asMutating(obj runtime.Object) *registrationv1.MutatingAdmissionPolicy {
	switch obj := obj.(type) {
	case *registrationv1.ValidatingAdmissionPolicy:
		return expressions.AsMutating(obj)
	case *registrationv1.MutatingAdmissionPolicy:
		return obj
	}
	return nil
}

// refuseKind returns why a user may not write a policy with this kind of parameters, or "". before may be nil.
func (p *Permission) refuseKind(u *auth.User, policy, before *registrationv1.MutatingAdmissionPolicy) string {
	kind := policy.Spec.ParamKind
	if kind == nil || before != nil && before.Spec.ParamKind != nil && *before.Spec.ParamKind == *kind {
		return ""
	}
	a, _ := p.reading(kind)
	a.Name, a.Namespace = "*", "*"
	if allowed, _ := p.Authorizer.Authorize(*u, a); allowed {
		return ""
	}
	return fmt.Sprintf(`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, `+
		`apiVersion=%s)`, u, kind.Kind, kind.APIVersion)
}

// reading returns the request to read objects of a kind of parameters. If the kind is not known, the request is for all
// resources of its group.
func (p *Permission) reading(kind *registrationv1.ParamKind) (rbac.Attributes, error) {
	a := rbac.Attributes{Verb: "get", Group: "*", Resource: "*"}
	if gv, err := schema.ParseGroupVersion(kind.APIVersion); err == nil {
		a.Group = gv.Group
	}
	source, err := p.Params.of(kind)
	if err == nil {
		a.Resource = source.resources.Definition.Plural
	}
	return a, err
}

// refuseParams returns why a user may not bind a policy of a kind to these parameters, or "".
func (p *Permission) refuseParams(ctx context.Context, u *auth.User, kind string,
	b *registrationv1.MutatingAdmissionPolicyBinding,
) string {
	ref := b.Spec.ParamRef
	if ref == nil {
		return ""
	}
	a := rbac.Attributes{Verb: "get", Group: "*", Resource: "*"}
	policy, missing := p.find(ctx, kind, b.Spec.PolicyName)
	var unknown error
	if missing == nil && policy.Spec.ParamKind != nil {
		a, unknown = p.reading(policy.Spec.ParamKind)
	}
	if a.Name, a.Namespace = ref.Name, ref.Namespace; ref.Name == "" {
		a.Verb = "list"
	}
	if allowed, _ := p.Authorizer.Authorize(*u, a); allowed {
		return ""
	}
	need := fmt.Sprintf("to determine minimum required permissions and user %v does not have %q permission for all "+
		"groups, versions and resources", u, a.Verb)
	switch {
	case missing != nil:
		return fmt.Sprintf("unable to get policy %s %s", b.Spec.PolicyName, need)
	case unknown != nil:
		k := policy.Spec.ParamKind
		return fmt.Sprintf("unable to resolve paramKind &{%s %s} %s", k.APIVersion, k.Kind, need)
	case kind == "MutatingAdmissionPolicy": // as in a real server, which confuses the two
		return fmt.Sprintf(`user %s does not have "%v" permission on the object referenced by paramRef`, a.Verb, u)
	}
	return fmt.Sprintf(`user %v does not have %q permission on the object referenced by paramRef`, u, a.Verb)
}

// find returns a policy of a kind, in the form of a mutating one.
func (p *Permission) find(ctx context.Context, kind, name string) (*registrationv1.MutatingAdmissionPolicy, error) {
	all := p.Params(registrationv1.SchemeGroupVersion.WithKind(kind))
	if all == nil {
		return nil, fmt.Errorf("%s is not served", kind)
	}
	found, err := all.Get(ctx, "", name, "")
	if err != nil {
		return nil, err
	}
	return asMutating(found.Object), nil
}
