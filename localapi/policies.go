package localapi

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/policy"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// policies enforces the admission policies among the server's objects.
type policies struct {
	server     *Server
	mutating   policy.Mutating
	validating policy.Validating
	permission policy.Permission
}

func newPolicies(s *Server, cel expressions.Evaluator, authorizer *rbac.Authorizer) *policies {
	p := &policies{server: s}
	o := policy.Options{Evaluator: cel, Authorizer: authorizer, Params: s.resourceOfKind}
	p.mutating.Options, p.validating.Options, p.permission.Options = o, o, o
	return p
}

// follow reads policies and bindings, and again after every write to one. Without an evaluator it does nothing.
func (p *policies) follow() error {
	if p.mutating.Evaluator == nil {
		return nil
	}
	return errors.Join(followPolicies(p.server, "mutatingadmissionpolic", p.mutating.Set),
		followPolicies(p.server, "validatingadmissionpolic", p.validating.Set))
}

// followPolicies calls set with the policies and the bindings of one kind, whose resources begin with stem, and again
// after every write to one.
func followPolicies[P, B runtime.Object](s *Server, stem string, set func([]P, []B)) error {
	all, bindings := s.registration(stem+"ies"), s.registration(stem+"ybindings")
	if all == nil || bindings == nil {
		return nil
	}
	return follow(func() error {
		policies, err := everything[P](all)
		bound, bindingsErr := everything[B](bindings)
		if err := errors.Join(err, bindingsErr); err != nil {
			return err
		}
		set(policies, bound)
		return nil
	}, all, bindings)
}
