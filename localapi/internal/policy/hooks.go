package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// Options are what policies need.
type Options struct {
	Evaluator  expressions.Evaluator // nil: there are no policies
	Authorizer *rbac.Authorizer
	Params     Params
}

// hook is a policy with its bindings. Both have the form of those of mutating policies. E is what it is compiled to.
type hook[E any] struct {
	*registrationv1.MutatingAdmissionPolicy
	bindings []*binding
	compiled func() E // compiles it on first use
}

// ignores reports whether the write passes if the policy cannot be used.
func (h *hook[E]) ignores() bool {
	return ptr.Deref(h.Spec.FailurePolicy, registrationv1.Fail) == registrationv1.Ignore
}

type binding struct {
	*registrationv1.MutatingAdmissionPolicyBinding
	actions []registrationv1.ValidationAction // of the binding of a validating policy
}

// hooks are the policies of one kind that have bindings.
type hooks[E any] struct {
	setting sync.Mutex // held while they are replaced
	all     atomic.Pointer[[]*hook[E]]
}

// set replaces the policies and the bindings, which are both sorted by name. A policy of the same generation as before
// stays compiled.
func (p *hooks[E]) set(all []*hook[E], bindings []*binding) {
	p.setting.Lock()
	defer p.setting.Unlock()
	type version struct {
		uid        types.UID
		generation int64
	}
	compiled := map[version]func() E{}
	if before := p.all.Load(); before != nil {
		for _, old := range *before {
			compiled[version{old.UID, old.Generation}] = old.compiled
		}
	}
	var bound []*hook[E]
	for _, h := range all {
		h.bindings = slices.DeleteFunc(slices.Clone(bindings), func(b *binding) bool {
			return b.Spec.PolicyName != h.Name
		})
		if len(h.bindings) == 0 {
			continue
		}
		if before := compiled[version{h.UID, h.Generation}]; before != nil {
			h.compiled = before
		}
		bound = append(bound, h)
	}
	p.all.Store(&bound)
}

// Idle implements [admission.Plugin].
func (p *hooks[E]) Idle(schema.GroupResource) bool { return p.none() }

func (p *hooks[E]) none() bool {
	all := p.all.Load()
	return all == nil || len(*all) == 0
}

// exempts reports whether no policy is for a write: policies are exempt, with their bindings, and so are the groups
// whose objects are questions, which are never stored. Configurations of webhooks are not.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/generic/plugin.go Dispatch.
func (p *hooks[E]) exempts(a *admission.Attributes) bool {
	switch a.Resource.Group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return true
	case registrationv1.GroupName:
		return p.none() || strings.Contains(a.Resource.Resource, "admissionpolic")
	}
	return p.none()
}

// invocation is a policy with one of its bindings, both of which match the write, and a value of its parameters.
type invocation[E any] struct {
	policy  *hook[E]
	binding *binding // nil in a report about the policy
	params  runtime.Object
	as      admission.Equivalent
}

// each calls invoke for what applies to a write, until that fails. report gets what is wrong with policies and
// bindings.
func (p *hooks[E]) each(ctx context.Context, a *admission.Attributes, sources Params,
	report func(invocation[E], error), invoke func(invocation[E]) error,
) error {
	for _, h := range *p.all.Load() {
		i := invocation[E]{policy: h}
		as, ok, err := matches(ctx, a, h.Spec.MatchConstraints)
		var source *paramSource
		if ok && err == nil {
			source, err = sources.of(h.Spec.ParamKind)
		}
		if err != nil {
			report(i, fmt.Errorf("failed to configure policy: %w", err))
		}
		if !ok || err != nil {
			continue
		}
		i.as = as
		for _, i.binding = range h.bindings {
			values, err := i.values(ctx, a, source)
			if err != nil {
				report(i, fmt.Errorf("failed to configure binding: %w", err))
			}
			for _, i.params = range values {
				if err := invoke(i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// values returns the values of the parameters for which the binding applies to a write.
func (i invocation[E]) values(ctx context.Context, a *admission.Attributes,
	source *paramSource,
) ([]runtime.Object, error) {
	if m := i.binding.Spec.MatchResources; m != nil {
		if _, ok, err := matches(ctx, a, m); err != nil || !ok {
			return nil, err
		}
	}
	return source.find(ctx, i.binding.Spec.ParamRef, a.Namespace)
}

// versioned returns a write with its objects in the kind that a policy sees.
func (o *Options) versioned(ctx context.Context, a *admission.Attributes,
	as admission.Equivalent,
) (expressions.Write, error) {
	v := *a
	var err error
	for _, obj := range []*runtime.Object{&v.Object, &v.OldObject} {
		if *obj == nil || (*obj).GetObjectKind().GroupVersionKind() == as.Kind {
			continue
		}
		if *obj, err = a.Server.Convert(ctx, *obj, as.Kind); err != nil {
			return expressions.Write{}, err
		}
	}
	return expressions.Write{Attributes: &v, As: as, Authorizer: o.Authorizer}, nil
}

// namespaceOf returns the namespace of a write. A Namespace has none.
func namespaceOf(ctx context.Context, a *admission.Attributes) (*corev1.Namespace, error) {
	if a.Namespace == "" || a.Kind == corev1.SchemeGroupVersion.WithKind("Namespace") {
		return nil, nil
	}
	return a.Server.Namespace(ctx, a.Namespace)
}
