package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/jsonpatch"
	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
)

// Mutating calls the mutating webhooks.
type Mutating struct {
	Options Options

	hooks atomic.Pointer[[]*hook]
}

// Set replaces the configurations, which are sorted by name.
func (p *Mutating) Set(all []*registrationv1.MutatingWebhookConfiguration) {
	var hooks []*hook
	for _, c := range all {
		for i := range c.Webhooks {
			hooks = append(hooks, newHook(&p.Options, c.Name, i, c.Webhooks[i]))
		}
	}
	p.hooks.Store(&hooks)
}

// Idle implements [admission.Plugin].
func (p *Mutating) Idle(schema.GroupResource) bool { return idle(&p.hooks) }

func idle(p *atomic.Pointer[[]*hook]) bool {
	hooks := p.Load()
	return hooks == nil || len(*hooks) == 0
}

// Validate implements [admission.Plugin].
func (p *Mutating) Validate(context.Context, *admission.Attributes) error { return nil }

// Mutate implements [admission.Plugin].
func (p *Mutating) Mutate(ctx context.Context, a *admission.Attributes) error {
	if idle(&p.hooks) || a.IsConfiguration() {
		return nil
	}
	m := &mutation{attributes: a, rounds: a.Rounds(p)}
	for i, h := range *p.hooks.Load() {
		if err := m.pass(ctx, h, i); err != nil {
			return err
		}
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	m.rounds.End()
	return nil
}

// mutation is one round of mutations of one write.
type mutation struct {
	attributes *admission.Attributes
	rounds     *admission.Rounds
	versions   *versions // nil: no webhook has been called
}

// in converts the objects of the write to the kind that a webhook gets.
func (m *mutation) in(ctx context.Context, kind schema.GroupVersionKind) (*versions, error) {
	a := m.attributes
	if m.versions == nil {
		v, err := convert(ctx, a, kind)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		m.versions = v
	}
	if m.versions.kind == kind {
		return m.versions, nil
	}
	if err := m.finish(ctx); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	v, err := convert(ctx, a, kind)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	m.versions = v
	return v, nil
}

// finish makes what the webhooks have made the object of the write.
func (m *mutation) finish(ctx context.Context) (err error) {
	v := m.versions
	if v == nil || !v.dirty {
		return nil
	}
	v.dirty = false
	m.attributes.Object, err = m.attributes.Server.Convert(ctx, v.object, m.attributes.Kind)
	return err
}

// convert returns the objects of a write in a kind.
func convert(ctx context.Context, a *admission.Attributes, kind schema.GroupVersionKind) (_ *versions, err error) {
	v := &versions{kind: kind}
	if a.OldObject != nil {
		if v.old, err = a.Server.Convert(ctx, a.OldObject, kind); err != nil {
			return nil, err
		}
	}
	if a.Object != nil {
		v.object, err = a.Server.Convert(ctx, a.Object, kind)
	}
	return v, err
}

// pass gives the write to a webhook, if it wants it.
func (m *mutation) pass(ctx context.Context, h *hook, index int) error {
	current := *m.attributes
	if m.versions != nil && m.versions.object != nil {
		current.Object = m.versions.object
	}
	as, ok, err := h.match(ctx, &current, func(kind schema.GroupVersionKind) (*versions, error) {
		return m.in(ctx, kind)
	})
	if err != nil || !ok || m.rounds.Skip(h.id) {
		return err
	}
	v, err := m.in(ctx, as.Kind)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	changed, err := m.call(ctx, h, as, v)
	m.note(h, index, changed, err)
	if changed {
		m.rounds.Changed()
	}
	m.rounds.Called(h.id, ptr.Deref(h.ReinvocationPolicy, registrationv1.NeverReinvocationPolicy))
	return h.judge(ctx, err)
}

// note puts what happened into the audit log.
func (m *mutation) note(h *hook, index int, changed bool, err error) {
	round := 0
	if m.rounds.Again() {
		round = 1
	}
	key := fmt.Sprintf("mutation.webhook.admission.k8s.io/round_%d_index_%d", round, index)
	value, _ := json.Marshal(struct {
		Configuration string `json:"configuration"`
		Webhook       string `json:"webhook"`
		Mutated       bool   `json:"mutated"`
	}{h.configuration, h.Name, changed})
	m.attributes.Annotate(key, string(value))
	var failed *callError
	if errors.As(err, &failed) && h.ignores() {
		m.attributes.Annotate("failed-open."+key, h.Name)
	}
}

// call calls a webhook and applies its patch.
func (m *mutation) call(ctx context.Context, h *hook, as admission.Equivalent, v *versions) (changed bool, err error) {
	result, err := h.call(ctx, invocation{m.attributes, as, v, true})
	if err != nil || len(result.patch) == 0 {
		return false, err
	}
	patch, err := jsonpatch.Decode(result.patch)
	if err != nil {
		return false, h.failed(fmt.Errorf("received undecodable patch in webhook response: %w", err))
	}
	if len(patch) == 0 {
		return false, nil
	}
	if v.object == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, "+
			"which is not supported for this operation", h.Name))
	}
	if result.patchType != admissionv1.PatchTypeJSONPatch {
		return false, h.failed(fmt.Errorf("unsupported patch type %q", result.patchType))
	}
	next, err := h.options.patched(ctx, v, patch, m.attributes.Server)
	if err != nil {
		return false, err
	}
	changed = !equality.Semantic.DeepEqual(v.object, next)
	if err := m.attributes.Server.Complete(next); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	v.object, v.dirty = next, true
	return changed, nil
}

// patched returns the object after a patch.
func (o *Options) patched(ctx context.Context, v *versions, patch jsonpatch.Patch,
	server admission.Server,
) (runtime.Object, error) {
	var before bytes.Buffer
	if err := o.Codec.Encode(v.object, &before); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := patch.Apply(ctx, before.Bytes())
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	into := server.New(v.kind)
	if _, ok := into.(*unstructured.Unstructured); ok {
		into = &unstructured.Unstructured{}
	}
	next, kind, err := o.Codec.Decode(after, nil, into)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	next.GetObjectKind().SetGroupVersionKind(*kind)
	return next, codec.CheckKind(next, v.kind)
}
