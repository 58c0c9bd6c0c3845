package policy

import (
	"context"
	"errors"
	"fmt"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

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
