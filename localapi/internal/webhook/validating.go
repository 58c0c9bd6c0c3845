package webhook

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/builtin"
)

// Validating calls the validating webhooks.
type Validating struct {
	Options Options

	hooks atomic.Pointer[[]*hook]
}

// Set replaces the configurations, which are sorted by name.
func (p *Validating) Set(all []*registrationv1.ValidatingWebhookConfiguration) {
	var hooks []*hook
	for _, c := range all {
		for i := range c.Webhooks {
			hooks = append(hooks, newHook(&p.Options, c.Name, i, builtin.AsMutating(&c.Webhooks[i])))
		}
	}
	p.hooks.Store(&hooks)
}

// Idle implements [admission.Plugin].
func (p *Validating) Idle(schema.GroupResource) bool { return idle(&p.hooks) }

// Mutate implements [admission.Plugin].
func (p *Validating) Mutate(context.Context, *admission.Attributes) error { return nil }

// question is what one webhook is asked about a write, and its answer.
type question struct {
	hook *hook
	invocation
	err error

	// said is what the webhook adds to the answer and to the audit log. It is added in the order of the webhooks, not
	// in that of their answers.
	said []func()
}

// ask asks the webhook. A panic is a failed call, because most questions are asked in goroutines of their own, where it
// would end the process.
func (q *question) ask(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			klog.FromContext(ctx).Error(nil, "Calling a webhook caused a panic", "webhook", q.hook.Name, "panic", p,
				"stack", string(debug.Stack()))
			q.err = q.hook.failed(fmt.Errorf("panic: %v", p))
		}
	}()
	a := *q.attributes
	a.Warn = func(text string) { q.said = append(q.said, func() { q.attributes.Warn(text) }) }
	a.Annotate = func(key, value string) { q.said = append(q.said, func() { q.attributes.Annotate(key, value) }) }
	i := q.invocation
	i.attributes = &a
	_, q.err = q.hook.call(ctx, i)
}

// Validate implements [admission.Plugin]. It waits for all webhooks. If several refuse the write, the client gets the
// error of the first.
func (p *Validating) Validate(ctx context.Context, a *admission.Attributes) error {
	if idle(&p.hooks) || a.IsConfiguration() {
		return nil
	}
	questions, err := p.questions(ctx, a)
	if err != nil || len(questions) == 0 {
		return err
	}
	if ctx.Err() != nil {
		return errTimeout
	}
	var wg sync.WaitGroup
	for _, q := range questions[1:] {
		wg.Go(func() { q.ask(ctx) })
	}
	questions[0].ask(ctx)
	wg.Wait()
	var refused error
	for i, q := range questions {
		for _, add := range q.said {
			add()
		}
		var failed *callError
		if errors.As(q.err, &failed) && q.hook.ignores() {
			a.Annotate(fmt.Sprintf("failed-open.validating.webhook.admission.k8s.io/round_0_index_%d", i), q.hook.Name)
		} else if refused == nil {
			refused = q.hook.judge(ctx, q.err)
		}
	}
	return refused
}

// questions returns what is asked of the webhooks that want the write.
func (p *Validating) questions(ctx context.Context, a *admission.Attributes) (all []*question, err error) {
	known := map[schema.GroupVersionKind]*versions{}
	in := func(kind schema.GroupVersionKind) (*versions, error) {
		if known[kind] == nil {
			v, err := convert(ctx, a, kind)
			if err != nil {
				return nil, err
			}
			known[kind] = v
		}
		return known[kind], nil
	}
	for _, h := range *p.hooks.Load() {
		as, ok, err := h.match(ctx, a, in)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		v, err := in(as.Kind)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		all = append(all, &question{hook: h, invocation: invocation{a, as, v, false}})
	}
	return all, nil
}
