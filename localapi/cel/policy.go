package cel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// policy is a compiled policy.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/validating/plugin.go compilePolicy, validator.go. That
// package brings informers and gRPC, so it is not used itself.
type policy struct {
	spec        *registrationv1.ValidatingAdmissionPolicySpec
	broken      error                   // why nothing could be compiled
	matcher     matchconditions.Matcher // nil: no conditions
	validations plugincel.ConditionEvaluator
	messages    plugincel.ConditionEvaluator
	annotations plugincel.ConditionEvaluator
}

// Policy implements [expressions.Evaluator].
func (evaluator) Policy(p *registrationv1.ValidatingAdmissionPolicy) expressions.Policy {
	compiled := &policy{spec: &p.Spec}
	c, err := plugincel.NewCompositedCompiler(base())
	if err != nil {
		compiled.broken = err
		return compiled
	}
	spec, params := &p.Spec, p.Spec.ParamKind != nil
	all := withAuthorizer(params)
	for _, v := range spec.Variables {
		c.CompileAndStoreVariable(variable(v), all, storedType)
	}
	if len(spec.MatchConditions) > 0 {
		compiled.matcher = matchconditions.NewMatcher(
			c.CompileCondition(accessors(spec.MatchConditions), all, storedType),
			spec.FailurePolicy, "policy", "validate", p.Name)
	}
	validations := make([]plugincel.ExpressionAccessor, len(spec.Validations))
	messages := make([]plugincel.ExpressionAccessor, len(spec.Validations))
	for i, v := range spec.Validations {
		validations[i] = validation(v.Expression)
		if v.MessageExpression != "" {
			messages[i] = message(v.MessageExpression)
		}
	}
	annotations := make([]plugincel.ExpressionAccessor, len(spec.AuditAnnotations))
	for i, a := range spec.AuditAnnotations {
		annotations[i] = annotation(a.ValueExpression)
	}
	compiled.validations = c.CompileCondition(validations, all, storedType)
	compiled.messages = c.CompileCondition(messages, withoutAuthorizer(params), storedType)
	compiled.annotations = c.CompileCondition(annotations, all, storedType)
	return compiled
}

// evaluation is the evaluation of a policy for one write.
type evaluation struct {
	*policy
	write     *admission.VersionedAttributes
	w         expressions.Write
	namespace *corev1.Namespace
	params    runtime.Object
	result    expressions.Judgement
}

// Evaluate implements [expressions.Policy].
func (p *policy) Evaluate(ctx context.Context, w expressions.Write, namespace *corev1.Namespace,
	params runtime.Object,
) expressions.Judgement {
	e := &evaluation{policy: p, write: versioned(w), w: w, namespace: namespace, params: params}
	if p.broken != nil {
		e.cannot(0, p.broken)
		return e.result
	}
	if p.matcher != nil {
		r := p.matcher.Match(ctx, e.write, params, authorize{w.Authorizer})
		if r.Error != nil {
			e.cannot(0, r.Error)
		}
		if r.Error != nil || !r.Matches {
			return e.result
		}
	}
	if e.validate(ctx) {
		e.annotate(ctx)
	}
	return e.result
}

// ignores reports whether errors of evaluation let a write pass.
func (p *policy) ignores() bool {
	return p.spec.FailurePolicy != nil && *p.spec.FailurePolicy == registrationv1.Ignore
}

// cannot notes that validation i could not be evaluated.
func (e *evaluation) cannot(i int, err error) {
	if !e.ignores() {
		e.result.Failures = append(e.result.Failures, expressions.Failure{Index: i, Message: err.Error()})
	}
}

// run evaluates expressions. authorized means that they may use the variable authorizer.
func (e *evaluation) run(ctx context.Context, c plugincel.ConditionEvaluator, authorized bool, budget int64) (
	[]plugincel.EvaluationResult, int64, error,
) {
	variables := plugincel.OptionalVariableBindings{VersionedParams: e.params}
	if authorized {
		variables.Authorizer = authorize{e.w.Authorizer}
	}
	ns := plugincel.CreateNamespaceObject(e.namespace)
	return c.ForInput(ctx, e.write, request(e.w, e.write), variables, ns, budget)
}

// validate evaluates the validations. It reports whether they could be evaluated.
func (e *evaluation) validate(ctx context.Context) bool {
	results, left, err := e.run(ctx, e.validations, true, celconfig.RuntimeCELCostBudget)
	if err != nil {
		e.cannot(0, err)
		return false
	}
	messages, _, messageErr := e.run(ctx, e.messages, false, left)
	fatal := errors.Is(messageErr, apiservercel.ErrInternal) || errors.Is(messageErr, apiservercel.ErrOutOfBudget)
	for i, r := range results {
		switch {
		case r.Error != nil:
			e.cannot(i, r.Error)
		case fatal:
			e.cannot(i, fmt.Errorf("failed messageExpression: %s", messageErr))
		case r.EvalResult != types.True:
			f := expressions.Failure{Index: i, Message: failureMessage(&e.spec.Validations[i], messages, i)}
			if reason := e.spec.Validations[i].Reason; reason != nil {
				f.Reason = *reason
			}
			e.result.Failures = append(e.result.Failures, f)
		}
	}
	return true
}

// failureMessage returns the message of a failed validation: that of its expression if it has a good one.
func failureMessage(v *registrationv1.Validation, messages []plugincel.EvaluationResult, i int) string {
	if i < len(messages) && messages[i].Error == nil && messages[i].EvalResult != nil {
		if text, ok := messages[i].EvalResult.Value().(string); ok {
			text = strings.TrimSpace(text)
			short := len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes
			if text != "" && short && !strings.Contains(text, "\n") {
				return text
			}
		}
	}
	if text := strings.TrimSpace(v.Message); text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(v.Expression)
}

// annotate evaluates the audit annotations.
func (e *evaluation) annotate(ctx context.Context) {
	results, _, err := e.run(ctx, e.annotations, true, celconfig.RuntimeCELCostBudget)
	if err != nil {
		e.result = expressions.Judgement{}
		e.cannot(0, err)
		return
	}
	for i, r := range results {
		a := e.spec.AuditAnnotations[i]
		if r.Error != nil {
			if !e.ignores() {
				e.result.Broken = append(e.result.Broken, r.Error.Error())
			}
			continue
		}
		text, ok := r.EvalResult.Value().(string)
		if text = strings.TrimSpace(text); ok && text != "" {
			e.result.Annotations = append(e.result.Annotations, expressions.Annotation{Key: a.Key, Value: text})
		}
	}
}

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
