package policy

import (
	"context"
	"errors"
	"slices"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
)

// matches reports whether a write matches the resources of a policy or of a binding, and as what.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/matching/matching.go.
func matches(ctx context.Context, a *admission.Attributes,
	m *registrationv1.MatchResources,
) (as admission.Equivalent, ok bool, err error) {
	if m == nil {
		return as, false, errors.New("policy contained no match constraints, a required field")
	}
	namespaces, err := metav1.LabelSelectorAsSelector(m.NamespaceSelector)
	if err != nil {
		return as, false, err
	}
	objects, err := metav1.LabelSelectorAsSelector(m.ObjectSelector)
	if err != nil {
		return as, false, err
	}
	here, missing := a.MatchNamespace(ctx, namespaces)
	if missing == nil && !here || !a.MatchObject(objects) {
		return as, false, nil
	}
	if _, excluded, err := a.MatchRules(named(m.ExcludeResourceRules, a.Name), m.MatchPolicy); excluded || err != nil {
		return as, false, err
	}
	if len(m.ResourceRules) == 0 {
		return admission.Equivalent{Resource: a.Resource, Kind: a.Kind}, missing == nil, missing
	}
	as, ok, err = a.MatchRules(named(m.ResourceRules, a.Name), m.MatchPolicy)
	if ok && err == nil {
		err = missing // matters only if the rest matches
	}
	return as, ok && err == nil, err
}

// named returns the rules that apply to objects with a name.
func named(rules []registrationv1.NamedRuleWithOperations, name string) []registrationv1.RuleWithOperations {
	var all []registrationv1.RuleWithOperations
	for _, r := range rules {
		if len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name) {
			all = append(all, r.RuleWithOperations)
		}
	}
	return all
}
