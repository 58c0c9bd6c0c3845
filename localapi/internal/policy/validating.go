package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// Validating enforces the validating admission policies that have bindings.
type Validating struct {
	Options
	hooks[expressions.Validating]
}

var _ admission.Plugin = (*Validating)(nil)

// Set replaces the policies and the bindings, which are both sorted by name.
func (p *Validating) Set(all []*registrationv1.ValidatingAdmissionPolicy,
	bindings []*registrationv1.ValidatingAdmissionPolicyBinding,
) {
	var policies []*hook[expressions.Validating]
	for _, v := range all {
		compile := sync.OnceValue(func() expressions.Validating { return p.Evaluator.Validating(v) })
		policies = append(policies, &hook[expressions.Validating]{
			MutatingAdmissionPolicy: expressions.AsMutating(v), compiled: compile,
		})
	}
	var bound []*binding
	for _, b := range bindings {
		bound = append(bound, &binding{expressions.AsMutatingBinding(b), b.Spec.ValidationActions})
	}
	p.set(policies, bound)
}

// Mutate implements [admission.Plugin].
func (p *Validating) Mutate(context.Context, *admission.Attributes) error { return nil }

// Validate implements [admission.Plugin].
func (p *Validating) Validate(ctx context.Context, a *admission.Attributes) error {
	if p.exempts(a) {
		return nil
	}
	v := &validation{Options: &p.Options, attributes: a}
	judge := func(i validator) error { return v.judge(ctx, i) }
	if err := p.each(ctx, a, p.Params, v.misconfigured, judge); err != nil {
		return err
	}
	return v.finish()
}

type validator = invocation[expressions.Validating]

// validation is the work for one write.
type validation struct {
	*Options
	attributes *admission.Attributes
	denied     []denial
	audited    []auditedFailure
	notes      annotations
}

// denial is a reason to refuse the write.
type denial struct {
	policy, binding string // binding is "" if the policy itself is wrong
	message         string
	reason          metav1.StatusReason
}

// auditedFailure is a failure as the audit log shows it.
type auditedFailure struct {
	Message           string                            `json:"message"`
	Policy            string                            `json:"policy"`
	Binding           string                            `json:"binding"`
	ExpressionIndex   int                               `json:"expressionIndex"`
	ValidationActions []registrationv1.ValidationAction `json:"validationActions"`
}

func (v *validation) deny(i validator, message string, reason metav1.StatusReason) {
	d := denial{policy: i.policy.Name, message: message, reason: reason}
	if i.binding != nil {
		d.binding = i.binding.Name
	}
	v.denied = append(v.denied, d)
}

// misconfigured refuses the write because a policy or a binding cannot be used, unless the failure policy is Ignore.
func (v *validation) misconfigured(i validator, err error) {
	if !i.policy.ignores() {
		v.deny(i, err.Error(), "")
	}
}

// judge evaluates a policy. Errors: the write cannot be judged at all.
func (v *validation) judge(ctx context.Context, i validator) error {
	w, err := v.versioned(ctx, v.attributes, i.as)
	if err != nil {
		v.misconfigured(i, fmt.Errorf("failed to configure binding: failed to convert object version: %w", err))
		return nil
	}
	namespace, err := namespaceOf(ctx, v.attributes)
	if err != nil {
		return err
	}
	j := i.policy.compiled().Evaluate(ctx, w, namespace, i.params)
	for _, f := range j.Failures {
		v.act(i, f)
	}
	for _, a := range j.Annotations {
		v.notes.add(i.policy.Name, a)
	}
	for _, message := range j.Broken {
		v.deny(i, message, "")
	}
	return nil
}

// act does what the binding asks for when a validation fails.
func (v *validation) act(i validator, f expressions.Failure) {
	for _, action := range i.binding.actions {
		switch action {
		case registrationv1.Deny:
			v.deny(i, f.Message, f.Reason)
		case registrationv1.Warn:
			v.attributes.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s",
				i.policy.Name, i.binding.Name, f.Message))
		case registrationv1.Audit:
			v.audited = append(v.audited, auditedFailure{
				Message: f.Message, Policy: i.policy.Name, Binding: i.binding.Name, ExpressionIndex: f.Index,
				ValidationActions: i.binding.actions,
			})
		}
	}
}

// finish notes the failures for the audit log, and returns the error for the first denial.
func (v *validation) finish() error {
	v.notes.publish(v.attributes.Annotate)
	if len(v.audited) > 0 {
		publishFailures(v.audited, v.attributes.Annotate)
	}
	if len(v.denied) == 0 {
		return nil
	}
	first := v.denied[0]
	text := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", first.policy, first.message)
	if first.binding != "" {
		text = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", first.policy,
			first.binding, first.message)
	}
	err := v.attributes.Forbidden(errors.New(text))
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	if first.reason != "" {
		err.ErrStatus.Reason = first.reason
	}
	switch first.reason {
	case metav1.StatusReasonForbidden:
		err.ErrStatus.Code = http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		err.ErrStatus.Code = http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		err.ErrStatus.Code = http.StatusRequestEntityTooLarge
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	return err
}
