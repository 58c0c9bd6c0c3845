package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// IsConfiguration reports whether the write is about the configuration of admission itself, which is exempt, so that a
// wrong configuration can always be removed.
func (a *Attributes) IsConfiguration() bool {
	return a.Kind.Group == registrationv1.GroupName && slices.Contains([]string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	}, a.Kind.Kind)
}

// MatchRules returns the resource and the kind in which a plugin with these rules gets the write. ok is false if no
// rule matches. If none matches the resource of the request, and the policy is Equivalent, a rule may match the
// resource under which the object is served as well.
func (a *Attributes) MatchRules(rules []registrationv1.RuleWithOperations,
	policy *registrationv1.MatchPolicyType,
) (as Equivalent, ok bool, err error) {
	matches := func(gvr schema.GroupVersionResource) func(registrationv1.RuleWithOperations) bool {
		return func(r registrationv1.RuleWithOperations) bool { return a.matchRule(&r, gvr) }
	}
	if slices.ContainsFunc(rules, matches(a.Resource)) {
		return Equivalent{Resource: a.Resource, Kind: a.Kind}, true, nil
	}
	if policy == nil || *policy != registrationv1.Equivalent {
		return as, false, nil
	}
	others := a.Server.Equivalents()
	for _, r := range rules {
		for _, other := range others {
			if !matches(other.Resource)(r) {
				continue
			}
			if other.Kind.Empty() {
				return as, false, apierrors.NewInternalError(fmt.Errorf("unable to convert to %v: unknown kind",
					other.Resource))
			}
			return other, true, nil
		}
	}
	return as, false, nil
}

func (a *Attributes) matchRule(r *registrationv1.RuleWithOperations, gvr schema.GroupVersionResource) bool {
	operation := registrationv1.OperationType(a.Operation)
	return a.matchScope(r.Scope, gvr) &&
		(slices.Contains(r.Operations, registrationv1.OperationAll) || slices.Contains(r.Operations, operation)) &&
		includes(r.APIGroups, gvr.Group) && includes(r.APIVersions, gvr.Version) &&
		slices.ContainsFunc(r.Resources, func(pattern string) bool {
			name, sub, _ := strings.Cut(pattern, "/")
			return includes([]string{name}, gvr.Resource) && includes([]string{sub}, a.Subresource)
		})
}

// matchScope counts a Namespace as cluster-scoped, although its own name stands for its namespace.
func (a *Attributes) matchScope(scope *registrationv1.ScopeType, gvr schema.GroupVersionResource) bool {
	if scope == nil || *scope == registrationv1.AllScopes {
		return true
	}
	inNamespace := gvr != namespaces && a.Namespace != ""
	return inNamespace == (*scope == registrationv1.NamespacedScope)
}

// includes reports whether list has s or a wildcard.
func includes(list []string, s string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, s)
}

// MatchNamespace reports whether the selector selects the namespace of the write. A Namespace that is being written is
// selected by its next state. Other cluster-scoped objects are always selected. Errors: NotFound, InternalError.
func (a *Attributes) MatchNamespace(ctx context.Context, selector labels.Selector) (bool, error) {
	isNamespace := a.Resource.Resource == namespaces.Resource
	if a.Namespace == "" && !isNamespace || selector.Empty() {
		return true, nil
	}
	if isNamespace && a.Subresource == "" && (a.Operation == admissionv1.Create || a.Operation == admissionv1.Update) {
		m, err := meta.Accessor(a.Object)
		if err != nil {
			return false, apierrors.NewInternalError(err)
		}
		return selector.Matches(labels.Set(m.GetLabels())), nil
	}
	ns, err := a.Server.Namespace(ctx, a.Namespace)
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			err = apierrors.NewInternalError(err)
		}
		return false, err
	}
	return selector.Matches(labels.Set(ns.Labels)), nil
}

// MatchObject reports whether the selector selects the next or the present state of the object.
func (a *Attributes) MatchObject(selector labels.Selector) bool {
	return selector.Empty() || selects(selector, a.Object) || selects(selector, a.OldObject)
}

func selects(selector labels.Selector, obj runtime.Object) bool {
	if obj == nil {
		return false
	}
	m, err := meta.Accessor(obj)
	return err == nil && selector.Matches(labels.Set(m.GetLabels()))
}
