package localapi

import (
	"errors"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/policy"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

// policies enforces the validating admission policies among the server's objects.
type policies struct {
	server     *Server
	validating policy.Validating
}

func newPolicies(s *Server, cel expressions.Evaluator, authorizer *rbac.Authorizer) *policies {
	p := &policies{server: s}
	p.validating = policy.Validating{Evaluator: cel, Authorizer: authorizer, Params: p.ofKind}
	return p
}

// ofKind returns the resource of a kind, or nil.
func (p *policies) ofKind(kind schema.GroupVersionKind) *registry.Resource {
	for _, r := range p.server.served.Load().resources {
		if r.Definition.GroupVersionKind() == kind {
			return r
		}
	}
	return nil
}

// follow reads policies and bindings, and again after every write to one. Without an evaluator it does nothing.
func (p *policies) follow() error {
	all := p.server.registration("validatingadmissionpolicies")
	bindings := p.server.registration("validatingadmissionpolicybindings")
	if p.validating.Evaluator == nil || all == nil || bindings == nil {
		return nil
	}
	return follow(func() error {
		policies, err := everything[*registrationv1.ValidatingAdmissionPolicy](all)
		bound, bindingsErr := everything[*registrationv1.ValidatingAdmissionPolicyBinding](bindings)
		if err := errors.Join(err, bindingsErr); err != nil {
			return err
		}
		p.validating.Set(policies, bound)
		return nil
	}, all, bindings)
}
