package customresource

import (
	"context"
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// scale holds the paths of a scale's values in an object. The paths have no leading dot.
type scale struct {
	spec, status, selector string
}

func newScale(s *apiextensionsv1.CustomResourceSubresourceScale) scale {
	trim := func(path string) string { return strings.TrimPrefix(path, ".") }
	return scale{
		spec: trim(s.SpecReplicasPath), status: trim(s.StatusReplicasPath),
		selector: trim(ptr.Deref(s.LabelSelectorPath, "")),
	}
}

func steps(path string) []string { return strings.Split(path, ".") }

// subresource returns the scale as a subresource.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/etcd.go ScaleREST.
func (s scale) subresource() resource.Subresource {
	path := fieldpath.Path{}
	for _, step := range steps(s.spec) {
		path = append(path, fieldpath.PathElement{FieldName: ptr.To(step)})
	}
	return resource.Subresource{
		Kind:  autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
		New:   func() runtime.Object { return &autoscalingv1.Scale{} },
		Verbs: []string{"get", "patch", "update"}, Replicas: path, Project: s.project, Merge: s.merge,
	}
}

// unset stands for a missing number of replicas while a scale is being changed.
const unset = math.MinInt32

func (s scale) project(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	u := obj.(*unstructured.Unstructured)
	replicas, found, err := unstructured.NestedInt64(u.Object, steps(s.spec)...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", "."+s.spec))
	}
	current, _, err := unstructured.NestedInt64(u.Object, steps(s.status)...)
	if err != nil {
		return nil, err
	}
	selector := ""
	if s.selector != "" {
		if selector, _, err = unstructured.NestedString(u.Object, steps(s.selector)...); err != nil {
			return nil, err
		}
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(current), Selector: selector},
	}, nil
}

func (s scale) merge(_ context.Context, obj, sub runtime.Object) error {
	u, view := obj.(*unstructured.Unstructured), sub.(*autoscalingv1.Scale)
	if view.Spec.Replicas == unset {
		return apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", "."+s.spec))
	}
	if view.Spec.Replicas < 0 {
		errs := field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), view.Spec.Replicas, "must be greater than or equal to 0"),
		}
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), u.GetName(), errs)
	}
	before, _, err := unstructured.NestedInt64(u.Object, steps(s.spec)...)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, int64(view.Spec.Replicas), steps(s.spec)...); err != nil {
		return err
	}
	if before != int64(view.Spec.Replicas) {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	return nil
}

// validate validates the values that a scale shows.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/validator.go ValidateScaleSpec,
// ValidateScaleStatus.
func (s scale) validate(obj runtime.Object, statusOnly bool) (errs field.ErrorList) {
	content := contentOf(obj)
	if !statusOnly {
		errs = append(errs, validateReplicas(content, s.spec)...)
	}
	errs = append(errs, validateReplicas(content, s.status)...)
	if s.selector != "" {
		if selector, _, err := unstructured.NestedString(content, steps(s.selector)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("."+s.selector), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(content map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(content, steps(path)...)
	at := field.NewPath("." + path)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(at, replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{
			field.Invalid(at, replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)),
		}
	}
	return nil
}
