package expressions

import (
	"context"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// Evaluator compiles and evaluates expressions. All methods may be called concurrently.
type Evaluator interface {
	// Rules compiles the rules (x-kubernetes-validations) of a schema. It returns nil if there are none. resource means
	// that the root of the schema is a whole resource, with metadata.
	Rules(s *structuralschema.Structural, resource bool) Rules

	// ValidateRules validates the rules in the schema of a definition.
	ValidateRules(path *field.Path, s *apiextensions.JSONSchemaProps, o Origin) field.ErrorList

	// Validating and Mutating compile a policy, and Conditions the match conditions of a webhook. What does not compile
	// fails when it is evaluated.
	Validating(p *registrationv1.ValidatingAdmissionPolicy) Validating
	Mutating(p *registrationv1.MutatingAdmissionPolicy) Mutating
	Conditions(w *registrationv1.MutatingWebhook) Conditions

	// ValidateValidating and ValidateMutating validate the expressions of a policy, and ValidateConditions those of a
	// webhook. before is nil for a new one.
	ValidateValidating(p, before *registrationv1.ValidatingAdmissionPolicy) field.ErrorList
	ValidateMutating(p, before *registrationv1.MutatingAdmissionPolicy) field.ErrorList
	ValidateConditions(path *field.Path, conditions, before []registrationv1.MatchCondition) field.ErrorList
}

// Rules are the compiled rules of a schema. They may be used concurrently.
type Rules interface {
	// Validate evaluates the rules on a value. It returns the errors and what is left of the budget, which is negative
	// if not all rules were evaluated.
	Validate(ctx context.Context, c Change, budget int64) (errs field.ErrorList, left int64)

	// Budget is the budget for the rules of one object.
	Budget() int64
}

// Change is a value for rules to judge.
type Change struct {
	Path *field.Path
	New  any
	Old  any // nil: there was none

	// Lenient turns the errors about parts that have not changed since Old into warnings, which Warn gets.
	Lenient bool
	Warn    func(string)
}

// Origin is what is known of a definition's schema besides its text.
type Origin struct {
	// Problems are the errors that were found in the schema. Rules above or at an erroneous part are not compiled.
	Problems field.ErrorList

	// Before are the schemas of the definition before the change. What they contain may use expressions that are no
	// longer accepted in new definitions.
	Before []*apiextensions.JSONSchemaProps

	// Unchanged means that the definition had this schema before. It keeps rules that cost too much.
	Unchanged bool
}

// Write is a write that conditions or a policy judge.
type Write struct {
	// Attributes have Object and OldObject in the kind of As. All else describes the request.
	*admission.Attributes
	As admission.Equivalent

	Authorizer *rbac.Authorizer // for the variable authorizer; nil allows everything
}

// Conditions are compiled match conditions. They may be used concurrently.
type Conditions interface {
	// Match reports whether all conditions hold. params are those of a policy; they may be nil. Errors: a condition
	// cannot be evaluated, and the failure policy says that this matters.
	Match(ctx context.Context, w Write, params runtime.Object) (bool, error)
}

// Validating is a compiled validating policy. It may be used concurrently.
type Validating interface {
	// Evaluate judges a write. namespace is nil for a cluster-scoped object and for a Namespace. params may be nil.
	Evaluate(ctx context.Context, w Write, namespace *corev1.Namespace, params runtime.Object) Judgement
}

// Mutating is a compiled mutating policy. It may be used concurrently.
type Mutating interface {
	Conditions

	// Mutate returns what mutation i of the policy makes of the object of a write, which it does not change. The result
	// has no Go type if the mutation is an apply configuration, and is the object itself if a test of a JSON patch
	// fails.
	Mutate(ctx context.Context, i int, w Write, namespace *corev1.Namespace, params runtime.Object) (runtime.Object,
		error)
}

// AsMutating returns what a validating policy has in common with a mutating one, in the form of the latter.
func AsMutating(p *registrationv1.ValidatingAdmissionPolicy) *registrationv1.MutatingAdmissionPolicy {
	s := &p.Spec
	return &registrationv1.MutatingAdmissionPolicy{
		ObjectMeta: p.ObjectMeta, Spec: registrationv1.MutatingAdmissionPolicySpec{
			ParamKind: s.ParamKind, MatchConstraints: s.MatchConstraints, Variables: s.Variables,
			FailurePolicy: s.FailurePolicy, MatchConditions: s.MatchConditions,
		},
	}
}

// AsMutatingBinding returns what the binding of a validating policy has in common with that of a mutating one, in the
// form of the latter.
func AsMutatingBinding(
	b *registrationv1.ValidatingAdmissionPolicyBinding,
) *registrationv1.MutatingAdmissionPolicyBinding {
	return &registrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: b.ObjectMeta, Spec: registrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: b.Spec.PolicyName, ParamRef: b.Spec.ParamRef, MatchResources: b.Spec.MatchResources,
		},
	}
}

// Judgement is what a policy says of a write, for one value of its parameters.
type Judgement struct {
	Failures []Failure

	// Annotations are for the audit log, by key. Broken are the messages of annotations that could not be computed.
	// They refuse the write.
	Annotations []Annotation
	Broken      []string
}

// Failure is a validation that failed.
type Failure struct {
	Index   int // of the validation in the policy
	Message string
	Reason  metav1.StatusReason // "" means Invalid
}

// Annotation is an audit annotation of a policy.
type Annotation struct{ Key, Value string }
