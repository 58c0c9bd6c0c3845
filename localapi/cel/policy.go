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
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// validating is a compiled validating policy.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/validating/plugin.go compilePolicy, validator.go. That
// package brings informers and gRPC, so it is not used itself.
type validating struct {
	conditions
	spec        *registrationv1.ValidatingAdmissionPolicySpec
	broken      error // why nothing could be compiled
	validations plugincel.ConditionEvaluator
	messages    plugincel.ConditionEvaluator
	annotations plugincel.ConditionEvaluator
}

// composed compiles what both kinds of policies have, and returns the compiler for the rest of a policy.
func composed(p *registrationv1.MutatingAdmissionPolicy) (*plugincel.CompositedCompiler, conditions, error) {
	c, err := plugincel.NewCompositedCompiler(base())
	if err != nil {
		return nil, conditions{}, err
	}
	all := withAuthorizer(p.Spec.ParamKind != nil)
	for _, v := range p.Spec.Variables {
		c.CompileAndStoreVariable(variable(v), all, storedType)
	}
	if len(p.Spec.MatchConditions) == 0 {
		return c, conditions{}, nil
	}
	compiled := c.CompileCondition(accessors(p.Spec.MatchConditions), all, storedType)
	m := matchconditions.NewMatcher(compiled, p.Spec.FailurePolicy, "policy", "validate", p.Name)
	return c, conditions{m}, nil
}

// Validating implements [expressions.Evaluator].
func (evaluator) Validating(p *registrationv1.ValidatingAdmissionPolicy) expressions.Validating {
	c, matching, err := composed(expressions.AsMutating(p))
	compiled := &validating{conditions: matching, spec: &p.Spec, broken: err}
	if err != nil {
		return compiled
	}
	spec, params := &p.Spec, p.Spec.ParamKind != nil
	all := withAuthorizer(params)
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
	*validating
	write     *admission.VersionedAttributes
	w         expressions.Write
	namespace *corev1.Namespace
	params    runtime.Object
	result    expressions.Judgement
}

// Evaluate implements [expressions.Validating].
func (p *validating) Evaluate(ctx context.Context, w expressions.Write, namespace *corev1.Namespace,
	params runtime.Object,
) expressions.Judgement {
	e := &evaluation{validating: p, write: versioned(w), w: w, namespace: namespace, params: params}
	if p.broken != nil {
		e.cannot(0, p.broken)
		return e.result
	}
	ok, err := p.Match(ctx, w, params)
	if err != nil {
		e.cannot(0, err)
	}
	if ok && err == nil && e.validate(ctx) {
		e.annotate(ctx)
	}
	return e.result
}

// ignores reports whether errors of evaluation let a write pass.
func (p *validating) ignores() bool {
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
