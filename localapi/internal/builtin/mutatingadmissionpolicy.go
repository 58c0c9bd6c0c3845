package builtin

import (
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func mutatingAdmissionPolicy() *resource.Definition {
	type T = registrationv1.MutatingAdmissionPolicy
	d := typed[T, registrationv1.MutatingAdmissionPolicyList](registrationv1.SchemeGroupVersion,
		"mutatingadmissionpolicies")
	admissionPolicyRules(d, func(p *T) *T { return p }, func(p *T) cell {
		return column("Mutations", "integer",
			"Mutation indicates the number of mutations rules defined in this configuration",
			int64(len(p.Spec.Mutations)))
	})
	d.Default = mutate(func(p *T) {
		setDefaultPtr(&p.Spec.FailurePolicy, registrationv1.Fail)
		defaultMatchResources(p.Spec.MatchConstraints)
	})
	d.Validate = rules(validateMutatingPolicy)
	return d
}

func mutatingAdmissionPolicyBinding() *resource.Definition {
	type T = registrationv1.MutatingAdmissionPolicyBinding
	d := typed[T, registrationv1.MutatingAdmissionPolicyBindingList](registrationv1.SchemeGroupVersion,
		"mutatingadmissionpolicybindings")
	admissionBindingRules(d, func(b *T) *T { return b }, func(f verify.Field, b *T) {
		validateMutable(f.Child("matchResources"), b.Spec.MatchResources)
	})
	return d
}

// The rules below are from where those of validating policies are. Those about expressions need CEL.

func validateMutatingPolicy(f verify.Field, p *registrationv1.MutatingAdmissionPolicy) {
	f, spec := f.Child("spec"), &p.Spec
	validateAdmissionPolicy(f, spec)
	validateMutable(f.Child("matchConstraints"), spec.MatchConstraints)
	f.Require("mutations", len(spec.Mutations) > 0, "mutations must contain at least one item")
	verify.Each(f, "mutations", spec.Mutations, validateMutation)
	verify.OneOf(f, "reinvocationPolicy", spec.ReinvocationPolicy, registrationv1.IfNeededReinvocationPolicy,
		registrationv1.NeverReinvocationPolicy)
}

// validateMutable rejects rules for operations that cannot be mutated, each of them once.
func validateMutable(f verify.Field, m *registrationv1.MatchResources) {
	if m == nil {
		return
	}
	seen := sets.New(registrationv1.OperationAll, registrationv1.Connect, registrationv1.Create, registrationv1.Update)
	possible := sets.List(seen)
	for _, r := range m.ResourceRules {
		for _, o := range r.Operations {
			if !seen.Has(o) {
				verify.Supported(f, "resourceRules.operations", o, possible...)
			}
			seen.Insert(o)
		}
	}
}

// validateMutation validates a mutation: it has the field for the type of its patch, with an expression, and no other.
func validateMutation(f verify.Field, m *registrationv1.Mutation) {
	type patch struct {
		of         registrationv1.PatchType
		name       string
		expression *string // nil: the field is not set
	}
	wanted := patch{of: registrationv1.PatchTypeApplyConfiguration, name: "applyConfiguration"}
	other := patch{of: registrationv1.PatchTypeJSONPatch, name: "jsonPatch"}
	if m.ApplyConfiguration != nil {
		wanted.expression = &m.ApplyConfiguration.Expression
	}
	if m.JSONPatch != nil {
		other.expression = &m.JSONPatch.Expression
	}
	if m.PatchType == other.of {
		wanted, other = other, wanted
	}
	if m.PatchType != wanted.of {
		verify.OneOf(f, "patchType", m.PatchType, wanted.of, other.of)
		return
	}
	when := "be specified when patchType is " + string(m.PatchType)
	f.Require(wanted.name, wanted.expression != nil, "must "+when)
	f.Require(wanted.name+".expression", strings.TrimSpace(ptr.Deref(wanted.expression, "unset")) != "", "")
	f.Reject(other.name, other.expression != nil, "{"+other.name+"}", "must not "+when)
}
