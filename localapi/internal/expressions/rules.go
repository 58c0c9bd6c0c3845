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

	// Policy compiles a policy, and Conditions the match conditions of a webhook. What does not compile fails when it
	// is evaluated.
	Policy(p *registrationv1.ValidatingAdmissionPolicy) Policy
	Conditions(w *registrationv1.MutatingWebhook) Conditions

	// ValidatePolicy validates the expressions of a policy, and ValidateConditions those of a webhook. before is nil
	// for a new one.
	ValidatePolicy(p, before *registrationv1.ValidatingAdmissionPolicy) field.ErrorList
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
	// Match reports whether all conditions hold. Errors: a condition cannot be evaluated, and the failure policy says
	// that this matters.
	Match(ctx context.Context, w Write) (bool, error)
}

// Policy is a compiled policy. It may be used concurrently.
type Policy interface {
	// Evaluate judges a write. namespace is nil for a cluster-scoped object and for a Namespace. params may be nil.
	Evaluate(ctx context.Context, w Write, namespace *corev1.Namespace, params runtime.Object) Judgement
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
