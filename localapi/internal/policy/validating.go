package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// Validating enforces the validating admission policies that have bindings.
type Validating struct {
	Evaluator  expressions.Evaluator // nil: there are no policies
	Authorizer *rbac.Authorizer
	Params     Params

	setting sync.Mutex // held while policies is replaced
	all     atomic.Pointer[[]*policy]
}

var _ admission.Plugin = (*Validating)(nil)

// policy is a policy with its bindings.
type policy struct {
	*registrationv1.ValidatingAdmissionPolicy
	bindings []*registrationv1.ValidatingAdmissionPolicyBinding
	compiled func() expressions.Policy // compiles it on first use
}

// Set replaces the policies and the bindings, which are both sorted by name.
func (p *Validating) Set(all []*registrationv1.ValidatingAdmissionPolicy,
	bindings []*registrationv1.ValidatingAdmissionPolicyBinding,
) {
	if p.Evaluator == nil {
		return
	}
	p.setting.Lock()
	defer p.setting.Unlock()
	type version struct {
		uid        types.UID
		generation int64
	}
	compiled := map[version]func() expressions.Policy{}
	if before := p.all.Load(); before != nil {
		for _, old := range *before {
			compiled[version{old.UID, old.Generation}] = old.compiled
		}
	}
	var bound []*policy
	for _, v := range all {
		b := slices.DeleteFunc(slices.Clone(bindings), func(b *registrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName != v.Name
		})
		if len(b) == 0 {
			continue
		}
		compile := compiled[version{v.UID, v.Generation}]
		if compile == nil {
			compile = sync.OnceValue(func() expressions.Policy { return p.Evaluator.Policy(v) })
		}
		bound = append(bound, &policy{ValidatingAdmissionPolicy: v, bindings: b, compiled: compile})
	}
	p.all.Store(&bound)
}

// Idle implements [admission.Plugin].
func (p *Validating) Idle() bool {
	all := p.all.Load()
	return all == nil || len(*all) == 0
}

// Mutate implements [admission.Plugin].
func (p *Validating) Mutate(context.Context, *admission.Attributes) error { return nil }

// exempt are the groups whose objects are questions, which are never stored.
var exempt = []string{"authentication.k8s.io", "authorization.k8s.io"}

// Validate implements [admission.Plugin].
func (p *Validating) Validate(ctx context.Context, a *admission.Attributes) error {
	if p.Idle() || a.IsConfiguration() || slices.Contains(exempt, a.Resource.Group) {
		return nil
	}
	d := &dispatch{Validating: p, attributes: a}
	for _, each := range *p.all.Load() {
		if err := d.policy(ctx, each); err != nil {
			return err
		}
	}
	return d.finish()
}

// dispatch is the work for one write.
type dispatch struct {
	*Validating
	attributes *admission.Attributes
	denied     []denial
	audited    []auditedFailure
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

// misconfigured refuses the write because a policy or a binding cannot be used, unless the failure policy is Ignore.
func (d *dispatch) misconfigured(p *policy, binding string, err error) {
	if f := p.Spec.FailurePolicy; f != nil && *f == registrationv1.Ignore {
		return
	}
	what := "policy"
	if binding != "" {
		what = "binding"
	}
	d.denied = append(d.denied, denial{
		policy: p.Name, binding: binding, message: fmt.Sprintf("failed to configure %s: %v", what, err),
	})
}

// policy applies one policy. Errors: the write cannot be judged at all.
func (d *dispatch) policy(ctx context.Context, p *policy) error {
	as, ok, err := matches(ctx, d.attributes, p.Spec.MatchConstraints)
	if err != nil {
		d.misconfigured(p, "", err)
		return nil
	}
	if !ok {
		return nil
	}
	params, err := d.Params.of(p.Spec.ParamKind)
	if err != nil {
		d.misconfigured(p, "", err)
		return nil
	}
	var annotations annotations
	for _, b := range p.bindings {
		if b.Spec.MatchResources != nil {
			_, ok, err := matches(ctx, d.attributes, b.Spec.MatchResources)
			if err != nil {
				d.misconfigured(p, b.Name, err)
			}
			if err != nil || !ok {
				continue
			}
		}
		if err := d.binding(ctx, bound{policy: p, binding: b, params: params, as: as}, &annotations); err != nil {
			return err
		}
	}
	annotations.publish(p.Name, d.attributes.Annotate)
	return nil
}

// bound is a policy with one of its bindings, both of which match the write.
type bound struct {
	policy  *policy
	binding *registrationv1.ValidatingAdmissionPolicyBinding
	params  *paramSource // nil: the policy has none
	as      admission.Equivalent
}

func (d *dispatch) binding(ctx context.Context, b bound, notes *annotations) error {
	values, err := b.params.find(ctx, b.binding.Spec.ParamRef, d.attributes.Namespace)
	if err != nil {
		d.misconfigured(b.policy, b.binding.Name, err)
		return nil
	}
	if len(values) == 0 {
		return nil
	}
	w, err := d.versioned(ctx, b.as)
	if err != nil {
		d.misconfigured(b.policy, b.binding.Name, fmt.Errorf("failed to convert object version: %w", err))
		return nil
	}
	namespace, err := d.namespace(ctx)
	if err != nil {
		return err
	}
	for _, value := range values {
		j := b.policy.compiled().Evaluate(ctx, w, namespace, value)
		for _, f := range j.Failures {
			d.act(b, f)
		}
		for _, a := range j.Annotations {
			notes.add(a)
		}
		for _, message := range j.Broken {
			d.denied = append(d.denied, denial{policy: b.policy.Name, binding: b.binding.Name, message: message})
		}
	}
	return nil
}

// act does what the binding asks for when a validation fails.
func (d *dispatch) act(b bound, f expressions.Failure) {
	for _, action := range b.binding.Spec.ValidationActions {
		switch action {
		case registrationv1.Deny:
			d.denied = append(d.denied, denial{
				policy: b.policy.Name, binding: b.binding.Name, message: f.Message, reason: f.Reason,
			})
		case registrationv1.Warn:
			d.attributes.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s",
				b.policy.Name, b.binding.Name, f.Message))
		case registrationv1.Audit:
			d.audited = append(d.audited, auditedFailure{
				Message: f.Message, Policy: b.policy.Name, Binding: b.binding.Name, ExpressionIndex: f.Index,
				ValidationActions: b.binding.Spec.ValidationActions,
			})
		}
	}
}

// versioned returns the write with its objects in the kind that the policy sees.
func (d *dispatch) versioned(ctx context.Context, as admission.Equivalent) (expressions.Write, error) {
	a := *d.attributes
	var err error
	for _, o := range []*runtime.Object{&a.Object, &a.OldObject} {
		if *o == nil || (*o).GetObjectKind().GroupVersionKind() == as.Kind {
			continue
		}
		if *o, err = a.Server.Convert(ctx, *o, as.Kind); err != nil {
			return expressions.Write{}, err
		}
	}
	return expressions.Write{Attributes: &a, As: as, Authorizer: d.Authorizer}, nil
}

// namespace returns the namespace of the write. A Namespace has none.
func (d *dispatch) namespace(ctx context.Context) (*corev1.Namespace, error) {
	a := d.attributes
	if a.Namespace == "" || a.Kind == corev1.SchemeGroupVersion.WithKind("Namespace") {
		return nil, nil
	}
	return a.Server.Namespace(ctx, a.Namespace)
}

// finish notes the failures for the audit log, and returns the error for the first denial.
func (d *dispatch) finish() error {
	if len(d.audited) > 0 {
		publishFailures(d.audited, d.attributes.Annotate)
	}
	if len(d.denied) == 0 {
		return nil
	}
	first := d.denied[0]
	text := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", first.policy, first.message)
	if first.binding != "" {
		text = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", first.policy,
			first.binding, first.message)
	}
	err := apierrors.NewForbidden(d.attributes.Resource.GroupResource(), nameOf(d.attributes), errors.New(text))
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

// nameOf returns the name of the object as errors print it.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/errors.go extractResourceName.
func nameOf(a *admission.Attributes) string {
	if a.Name != "" {
		return a.Name
	}
	if a.Object != nil {
		m, err := meta.Accessor(a.Object)
		switch {
		case err != nil:
			return "Unknown/errorGettingName"
		case m.GetName() != "":
			return m.GetName()
		case m.GetGenerateName() != "":
			return m.GetGenerateName()
		}
	}
	return "Unknown"
}
