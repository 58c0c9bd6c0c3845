package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// Options are what webhooks need.
type Options struct {
	Clients *webhookclient.Clients

	// Codec decodes what a webhook has patched.
	Codec runtime.Serializer

	// CEL evaluates match conditions. If it is nil, a write that would need them is refused. Authorizer is for what
	// they ask about users.
	CEL        expressions.Evaluator
	Authorizer *rbac.Authorizer
}

// hook is a webhook of a configuration. A validating one has the form of a mutating one.
type hook struct {
	registrationv1.MutatingWebhook
	configuration string
	id            string // unique among the webhooks of all configurations of the kind

	namespaces, objects labels.Selector
	conditions          func() expressions.Conditions // compiles them on first use; nil: none
	broken              error                         // the configuration cannot be used: it was not validated
	options             *Options
}

func newHook(o *Options, configuration string, n int, w registrationv1.MutatingWebhook) *hook {
	h := &hook{
		MutatingWebhook: w, configuration: configuration, options: o,
		id: fmt.Sprintf("%s/%s/%d", configuration, w.Name, n),
	}
	var errs [3]error
	h.namespaces, errs[0] = metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	h.objects, errs[1] = metav1.LabelSelectorAsSelector(w.ObjectSelector)
	switch {
	case len(w.MatchConditions) == 0:
	case o.CEL == nil:
		errs[2] = errors.New("matchConditions: this server does not evaluate CEL")
	default:
		h.conditions = sync.OnceValue(func() expressions.Conditions { return o.CEL.Conditions(&w) })
	}
	h.broken = errors.Join(errs[:]...)
	return h
}

// ignores reports whether a failed call lets the write pass.
func (h *hook) ignores() bool {
	return h.FailurePolicy != nil && *h.FailurePolicy == registrationv1.Ignore
}

// supportsDryRun returns an error for a dry run that the webhook would not notice.
func (h *hook) supportsDryRun(a *admission.Attributes) error {
	if !a.DryRun {
		return nil
	}
	switch ptr.Deref(h.SideEffects, registrationv1.SideEffectClassUnknown) {
	case registrationv1.SideEffectClassNone, registrationv1.SideEffectClassNoneOnDryRun:
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Name))
}

// versions are the objects of a write in the kind that a webhook gets.
type versions struct {
	kind        schema.GroupVersionKind
	object, old runtime.Object
	dirty       bool // object is no longer what Attributes.Object was converted to
}

// match returns as what the webhook gets the write, or ok false if it does not get it. in returns the objects of the
// write in a kind.
func (h *hook) match(ctx context.Context, a *admission.Attributes,
	in func(schema.GroupVersionKind) (*versions, error),
) (as admission.Equivalent, ok bool, err error) {
	if h.broken != nil { // Its selectors may be what is broken.
		if as, ok, err = a.MatchRules(h.Rules, h.MatchPolicy); ok && err == nil {
			err = apierrors.NewInternalError(h.broken)
		}
		return as, false, err
	}
	here, missing := a.MatchNamespace(ctx, h.namespaces)
	if missing == nil && !here || !a.MatchObject(h.objects) {
		return as, false, nil
	}
	as, ok, err = a.MatchRules(h.Rules, h.MatchPolicy)
	if err != nil || !ok {
		return as, false, err
	}
	if missing != nil { // matters only to a webhook that would get the write
		return as, false, missing
	}
	if h.conditions == nil {
		return as, true, nil
	}
	v, err := in(as.Kind)
	if err != nil {
		return as, false, apierrors.NewInternalError(err)
	}
	b := *a
	b.Object, b.OldObject = v.object, v.old
	ok, err = h.conditions().Match(ctx, expressions.Write{Attributes: &b, As: as, Authorizer: h.options.Authorizer})
	if err != nil {
		err = apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	}
	return as, ok && err == nil, err
}
