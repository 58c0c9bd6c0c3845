package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
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

// Params returns the resource whose objects have a kind, or nil if there is none.
type Params func(kind schema.GroupVersionKind) *registry.Resource

// paramSource are the objects of the kind of a policy's parameters.
type paramSource struct {
	kind      schema.GroupVersionKind
	resources *registry.Resource
}

// of returns the source for a policy with parameters of a kind. It is nil for a policy without.
func (p Params) of(kind *registrationv1.ParamKind) (*paramSource, error) {
	if kind == nil {
		return nil, nil
	}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, err
	}
	s := &paramSource{kind: gv.WithKind(kind.Kind)}
	if s.resources = p(s.kind); s.resources == nil {
		return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", s.kind)
	}
	return s, nil
}

// find returns the parameters that a binding refers to. A policy or a binding without parameters gets nil once. A
// result without elements means that the binding does not apply. namespace is that of the write.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/generic/policy_dispatcher.go CollectParams.
func (s *paramSource) find(ctx context.Context, ref *registrationv1.ParamRef,
	namespace string,
) ([]runtime.Object, error) {
	if s == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	namespaced := s.resources.Definition.Namespaced
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	switch {
	case namespaced && namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	case !namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !namespaced:
		namespace = ""
	}
	found, err := s.read(ctx, ref, namespace)
	if err != nil {
		return nil, err
	}
	if a := ref.ParameterNotFoundAction; len(found) == 0 && a != nil && *a == registrationv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return found, nil
}

func (s *paramSource) read(ctx context.Context, ref *registrationv1.ParamRef,
	namespace string,
) (found []runtime.Object, err error) {
	if ref.Name != "" {
		o, err := s.resources.Get(ctx, namespace, ref.Name, "")
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []runtime.Object{s.typed(o.Object)}, nil
	}
	selector := labels.Everything()
	if ref.Selector != nil {
		if selector, err = metav1.LabelSelectorAsSelector(ref.Selector); err != nil {
			return nil, err
		}
	}
	of := registry.Selection{Namespace: namespace, Labels: selector}
	result, err := s.resources.List(ctx, registry.ListOptions{Selection: of})
	for _, o := range result.Objects {
		found = append(found, s.typed(o.Object))
	}
	return found, err
}

// typed returns obj with its kind set, which expressions can read.
func (s *paramSource) typed(obj runtime.Object) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == s.kind {
		return obj
	}
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(s.kind)
	return obj
}

// longestAnnotation bounds the value of an audit annotation.
const longestAnnotation = 10 << 10

// annotations collects audit annotations. The zero value is empty.
type annotations map[string][]string

func (n *annotations) add(policy string, a expressions.Annotation) {
	key, value := policy+"/"+a.Key, a.Value[:min(len(a.Value), longestAnnotation)]
	if slices.Contains((*n)[key], value) {
		return
	}
	if *n == nil {
		*n = annotations{}
	}
	(*n)[key] = append((*n)[key], value)
}

// publish writes the annotations. Several values of one key, which different parameters can give, stand side by side.
func (n annotations) publish(annotate func(key, value string)) {
	for _, key := range slices.Sorted(maps.Keys(n)) {
		annotate(key, strings.Join(n[key], ", "))
	}
}

// mostFailures bounds the failures in an audit annotation.
const mostFailures = 50

func publishFailures(failures []auditedFailure, annotate func(key, value string)) {
	value, err := json.Marshal(failures[:min(len(failures), mostFailures)])
	if err != nil {
		return // cannot happen: there are only strings in it
	}
	annotate("validation.policy.admission.k8s.io/validation_failure", string(value))
}
