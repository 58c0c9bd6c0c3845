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

var _ expressions.Evaluator = evaluator{}

// ValidateValidating implements [expressions.Evaluator].
func (evaluator) ValidateValidating(p, before *registrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	v := &policyCheck{known: map[string]bool{}}
	if before != nil {
		v.knows(&expressions.AsMutating(before).Spec)
		for _, validates := range before.Spec.Validations {
			v.known[validates.Expression], v.known[validates.MessageExpression] = true, true
		}
		for _, a := range before.Spec.AuditAnnotations {
			v.known[a.ValueExpression] = true
		}
	}
	path := field.NewPath("spec")
	if err := v.begin(path, &expressions.AsMutating(p).Spec, len(p.Spec.Variables) > 0); err != nil {
		return append(v.errs, err)
	}
	for i, validates := range p.Spec.Validations {
		at := path.Child("validations").Index(i)
		v.check(at.Child("expression"), validation(validates.Expression), withAuthorizer(v.params))
		v.check(at.Child("messageExpression"), message(validates.MessageExpression), withoutAuthorizer(v.params))
	}
	for i, a := range p.Spec.AuditAnnotations {
		v.annotation(path.Child("auditAnnotations").Index(i).Child("valueExpression"), a.ValueExpression)
	}
	return v.errs
}

// ValidateMutating implements [expressions.Evaluator].
func (evaluator) ValidateMutating(p, before *registrationv1.MutatingAdmissionPolicy) field.ErrorList {
	v := &policyCheck{known: map[string]bool{}}
	if before != nil {
		v.knows(&before.Spec)
		for i := range before.Spec.Mutations {
			if e, _ := mutationExpression(&before.Spec.Mutations[i]); e != nil {
				v.known[e.GetExpression()] = true
			}
		}
	}
	path := field.NewPath("spec")
	if err := v.begin(path, &p.Spec, true); err != nil {
		return append(v.errs, err)
	}
	for i := range p.Spec.Mutations {
		if e, name := mutationExpression(&p.Spec.Mutations[i]); e != nil {
			v.check(path.Child("mutations").Index(i).Child(name, "expression"), e, withPatchTypes(v.params))
		}
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

// begin validates what both kinds of policies have, and gets ready for the rest of a policy. composed means that its
// expressions may use variables.
func (v *policyCheck) begin(path *field.Path, spec *registrationv1.MutatingAdmissionPolicySpec,
	composed bool,
) *field.Error {
	v.params, v.compiler = spec.ParamKind != nil, compiler() // conditions cannot use variables
	for i := range spec.MatchConditions {
		c := (*matchconditions.MatchCondition)(&spec.MatchConditions[i])
		v.check(path.Child("matchConditions").Index(i).Child("expression"), c, withAuthorizer(v.params))
	}
	if !composed {
		return nil
	}
	composited, err := plugincel.NewCompositedCompiler(base())
	if err != nil {
		return field.InternalError(path.Child("variables"), err)
	}
	v.compiler = composited
	for i, variable := range spec.Variables {
		v.variable(path.Child("variables").Index(i).Child("expression"), composited, variable)
	}
	return nil
}

// knows adds the expressions that both kinds of policies have.
func (v *policyCheck) knows(before *registrationv1.MutatingAdmissionPolicySpec) {
	for _, c := range before.MatchConditions {
		v.known[c.Expression] = true
	}
	for _, variable := range before.Variables {
		v.known[variable.Expression] = true
	}
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
