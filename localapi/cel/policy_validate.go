package cel

import (
	"errors"
	"fmt"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// The rules of this file are those of k8s.io/kubernetes v1.37.1 pkg/apis/admissionregistration/validation/validation.go
// about expressions. Expressions that are missing are reported elsewhere.

var _ expressions.Evaluator = evaluator{}

// ValidatePolicy implements [expressions.Evaluator].
func (evaluator) ValidatePolicy(p, before *registrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	v := &policyCheck{known: knownInPolicy(before), params: p.Spec.ParamKind != nil, compiler: compiler()}
	path, spec := field.NewPath("spec"), &p.Spec
	for i := range spec.MatchConditions {
		c := (*matchconditions.MatchCondition)(&spec.MatchConditions[i])
		stateless := *v
		stateless.compiler = compiler()
		stateless.check(path.Child("matchConditions").Index(i).Child("expression"), c, withAuthorizer(v.params))
		v.errs = stateless.errs
	}
	if len(spec.Variables) > 0 {
		composited, err := plugincel.NewCompositedCompiler(base())
		if err != nil {
			return append(v.errs, field.InternalError(path.Child("variables"), err))
		}
		v.compiler = composited
		for i, variable := range spec.Variables {
			v.variable(path.Child("variables").Index(i).Child("expression"), composited, variable)
		}
	}
	for i, validates := range spec.Validations {
		at := path.Child("validations").Index(i)
		v.check(at.Child("expression"), validation(validates.Expression), withAuthorizer(v.params))
		v.check(at.Child("messageExpression"), message(validates.MessageExpression), withoutAuthorizer(v.params))
	}
	for i, a := range spec.AuditAnnotations {
		v.annotation(path.Child("auditAnnotations").Index(i).Child("valueExpression"), a.ValueExpression)
	}
	return v.errs
}

// ValidateConditions implements [expressions.Evaluator].
func (evaluator) ValidateConditions(path *field.Path, conditions,
	before []registrationv1.MatchCondition,
) field.ErrorList {
	v := &policyCheck{known: map[string]bool{}, compiler: compiler()}
	for _, c := range before {
		v.known[c.Expression] = true
	}
	for i := range conditions {
		c := (*matchconditions.MatchCondition)(&conditions[i])
		v.check(path.Index(i).Child("expression"), c, withAuthorizer(false))
	}
	return v.errs
}

// policyCheck validates the expressions of one object.
type policyCheck struct {
	known    map[string]bool // the expressions that the object had before
	params   bool            // expressions may use params
	compiler plugincel.Compiler
	errs     field.ErrorList
}

func knownInPolicy(p *registrationv1.ValidatingAdmissionPolicy) map[string]bool {
	known := map[string]bool{}
	if p == nil {
		return known
	}
	for _, c := range p.Spec.MatchConditions {
		known[c.Expression] = true
	}
	for _, v := range p.Spec.Variables {
		known[v.Expression] = true
	}
	for _, v := range p.Spec.Validations {
		known[v.Expression], known[v.MessageExpression] = true, true
	}
	for _, a := range p.Spec.AuditAnnotations {
		known[a.ValueExpression] = true
	}
	return known
}

func (v *policyCheck) in(e plugincel.ExpressionAccessor) environment.Type {
	return environmentType(v.known, e.GetExpression())
}

// check compiles an expression, if there is one.
func (v *policyCheck) check(path *field.Path, e plugincel.ExpressionAccessor,
	variables plugincel.OptionalVariableDeclarations,
) {
	if strings.TrimSpace(e.GetExpression()) != "" {
		v.report(path, e.GetExpression(), v.compiler.CompileCELExpression(e, variables, v.in(e)).Error)
	}
}

// variable compiles a variable, which later expressions can use.
func (v *policyCheck) variable(path *field.Path, c *plugincel.CompositedCompiler, declared registrationv1.Variable) {
	if e := variable(declared); strings.TrimSpace(e.text) != "" {
		v.report(path, e.text, c.CompileAndStoreVariable(e, withAuthorizer(v.params), v.in(e)).Error)
	}
}

// longestAnnotation bounds the expressions of audit annotations. Longer ones are reported elsewhere.
const longestAnnotation = 5 << 10

func (v *policyCheck) annotation(path *field.Path, text string) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || len(trimmed) > longestAnnotation {
		return
	}
	in := environmentType(v.known, text)
	v.report(path, text, v.compiler.CompileCELExpression(annotation(trimmed), withAuthorizer(v.params), in).Error)
}

// report notes an error of compilation.
func (v *policyCheck) report(path *field.Path, text string, problem *apiservercel.Error) {
	if problem == nil {
		return
	}
	switch problem.Type {
	case apiservercel.ErrorTypeRequired:
		v.errs = append(v.errs, field.Required(path, problem.Detail))
	case apiservercel.ErrorTypeInvalid:
		v.errs = append(v.errs, field.Invalid(path, text, problem.Detail))
	case apiservercel.ErrorTypeInternal:
		v.errs = append(v.errs, field.InternalError(path, problem))
	default:
		v.errs = append(v.errs, field.InternalError(path,
			fmt.Errorf("unsupported error type: %w", errors.New(problem.Error()))))
	}
}
