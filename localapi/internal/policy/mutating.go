package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// Mutating applies the mutating admission policies that have bindings.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/mutating/dispatcher.go.
type Mutating struct {
	Options
	hooks[expressions.Mutating]
}

var _ admission.Plugin = (*Mutating)(nil)

// Set replaces the policies and the bindings, which are both sorted by name.
func (p *Mutating) Set(all []*registrationv1.MutatingAdmissionPolicy,
	bindings []*registrationv1.MutatingAdmissionPolicyBinding,
) {
	var policies []*hook[expressions.Mutating]
	for _, m := range all {
		compile := sync.OnceValue(func() expressions.Mutating { return p.Evaluator.Mutating(m) })
		policies = append(policies, &hook[expressions.Mutating]{MutatingAdmissionPolicy: m, compiled: compile})
	}
	var bound []*binding
	for _, b := range bindings {
		bound = append(bound, &binding{MutatingAdmissionPolicyBinding: b})
	}
	p.set(policies, bound)
}

// Validate implements [admission.Plugin].
func (p *Mutating) Validate(context.Context, *admission.Attributes) error { return nil }

// Mutate implements [admission.Plugin].
func (p *Mutating) Mutate(ctx context.Context, a *admission.Attributes) error {
	if p.exempts(a) || a.Operation == admissionv1.Delete {
		return nil
	}
	m := &mutation{Options: &p.Options, attributes: a, versions: map[schema.GroupVersionKind]*version{}}
	var all []mutator
	err := p.each(ctx, a, p.Params, m.misconfigured, func(i mutator) error {
		all = append(all, i)
		return nil
	})
	if err == nil && len(all) > 0 {
		m.rounds = a.Rounds(p)
		err = m.invoke(ctx, all)
		m.rounds.End()
	}
	if err != nil {
		return err
	}
	return m.refusal()
}

type mutator = invocation[expressions.Mutating]

// mutation is one round of mutations of one write.
type mutation struct {
	*Options
	attributes *admission.Attributes
	rounds     *admission.Rounds
	namespace  *corev1.Namespace
	versions   map[schema.GroupVersionKind]*version
	last       *version // the one in which the last mutation was made
	failures   []failure
}

// version is the write in one kind. As in a real server, all kinds are converted from what the round began with, so if
// policies mutate an object in several kinds, only the mutations in the last one remain.
type version struct {
	expressions.Write
	mutated bool
}

// failure is a reason to refuse the write.
type failure struct {
	text   string
	reason metav1.StatusReason // "" means Forbidden
}

// misconfigured refuses the write because a policy or a binding cannot be used, unless the failure policy is Ignore.
func (m *mutation) misconfigured(i mutator, err error) { m.fail(i, err, "") }

func (m *mutation) fail(i mutator, err error, reason metav1.StatusReason) {
	if i.policy.ignores() {
		return
	}
	text := fmt.Sprintf("policy %q denied request: %v", i.policy.Name, err)
	if i.binding != nil {
		text = fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", i.policy.Name, i.binding.Name, err)
	}
	m.failures = append(m.failures, failure{text, reason})
}

// refusal returns the error for the failures, if there are any.
func (m *mutation) refusal() error {
	if len(m.failures) == 0 {
		return nil
	}
	err := m.attributes.Forbidden(errors.New("admission request denied by policy"))
	status := &err.ErrStatus
	status.Message = m.failures[0].text
	if reason := m.failures[0].reason; reason != "" {
		status.Reason = reason
	}
	for _, f := range m.failures {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Message: f.text})
	}
	return err
}

// invoke applies policies, and makes the result the object of the write. Errors: the write is refused whatever the
// failure policies are.
func (m *mutation) invoke(ctx context.Context, all []mutator) (err error) {
	if m.namespace, err = namespaceOf(ctx, m.attributes); err != nil {
		return err
	}
	for _, i := range all {
		if err := m.apply(ctx, i); err != nil {
			return err
		}
	}
	if m.last == nil || !m.last.mutated {
		return nil
	}
	m.rounds.Changed()
	a := m.attributes
	if a.Object, err = a.Server.Convert(ctx, m.last.Object, a.Kind); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to convert object: %w", err))
	}
	return nil
}

// in returns the write in the kind that a policy sees.
func (m *mutation) in(ctx context.Context, as admission.Equivalent) (*version, error) {
	if v := m.versions[as.Kind]; v != nil {
		return v, nil
	}
	w, err := m.versioned(ctx, m.attributes, as)
	if err != nil {
		return nil, err
	}
	m.versions[as.Kind] = &version{Write: w}
	return m.versions[as.Kind], nil
}

func (m *mutation) apply(ctx context.Context, i mutator) error {
	v, err := m.in(ctx, i.as)
	if err != nil {
		m.misconfigured(mutator{policy: i.policy}, fmt.Errorf("failed to configure policy: %w", err))
		return nil
	}
	v.As = i.as
	ok, err := i.policy.compiled().Match(ctx, v.Write, i.params)
	if err != nil {
		m.fail(i, err, metav1.StatusReasonInvalid)
	}
	if err != nil || !ok || m.rounds.Skip(key(i)) {
		return nil
	}
	before := v.Object
	for n := range i.policy.Spec.Mutations {
		if v.Object == nil {
			break
		}
		m.last = v
		next, err := m.mutate(ctx, i, n, v.Write)
		var status *apierrors.StatusError
		switch {
		case errors.As(err, &status):
			return status
		case err != nil:
			m.fail(i, err, metav1.StatusReasonInvalid)
		default:
			v.Object, v.mutated = next, true
		}
	}
	if !equality.Semantic.DeepEqual(before, v.Object) {
		m.rounds.Changed()
	}
	m.rounds.Called(key(i), i.policy.Spec.ReinvocationPolicy)
	return nil
}

// key identifies an invocation among those of a write.
func key(i mutator) string {
	parts := []string{i.policy.Name, i.binding.Name}
	if p, err := meta.Accessor(i.params); err == nil {
		parts = append(parts, p.GetNamespace(), p.GetName())
	}
	return strings.Join(parts, "/")
}

// mutate returns what one mutation makes of the object of a write. An object with a Go type that the policy sees in
// another kind than that of the request cannot be mutated: a real server then converts it without its internal kind,
// which always fails.
func (m *mutation) mutate(ctx context.Context, i mutator, n int, w expressions.Write) (runtime.Object, error) {
	next, err := i.policy.compiled().Mutate(ctx, n, w, m.namespace, i.params)
	if err != nil || next == w.Object {
		return next, err
	}
	into := w.Server.New(w.As.Kind)
	if u, untyped := next.(*unstructured.Unstructured); untyped && !codec.IsUnstructured(into) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
			return nil, fmt.Errorf("unable to convert unstructured object to %v: %w", w.As.Kind, err)
		}
		next = into
	}
	if err := codec.CheckKind(next, w.As.Kind); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("failed to convert object: %w", err))
	}
	if w.As.Kind != w.Kind && !codec.IsUnstructured(into) {
		if _, err := clientscheme.Scheme.ConvertToVersion(next, w.Kind.GroupVersion()); err != nil {
			return nil, err
		}
	}
	return next, w.Server.Complete(next)
}
