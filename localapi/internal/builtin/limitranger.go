package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
)

// LimitRanger applies the LimitRanges of a namespace: new pods get their defaults, and what exceeds their limits is
// refused. Where a message has several parts, they come in the order of the resources' names.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/limitranger/admission.go.
type LimitRanger struct {
	// Ranges returns the LimitRanges of a namespace, in the order of their names, read-only.
	Ranges func(namespace string) ([]*corev1.LimitRange, error)
}

var _ admission.Plugin = (*LimitRanger)(nil)

// Idle implements [admission.Plugin].
func (l *LimitRanger) Idle(r schema.GroupResource) bool {
	return r != corev1.Resource("pods") && r != corev1.Resource("persistentvolumeclaims")
}

// Mutate implements [admission.Plugin].
func (l *LimitRanger) Mutate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return nil
	}
	ranges, err := l.applying(a)
	if err != nil || len(ranges) == 0 {
		return err
	}
	pod = pod.DeepCopy()
	for _, r := range ranges {
		setDefaultResources(pod, r.Spec.Limits)
	}
	a.Object = pod
	return nil
}

// Validate implements [admission.Plugin].
func (l *LimitRanger) Validate(_ context.Context, a *admission.Attributes) error {
	ranges, err := l.applying(a)
	for _, r := range ranges {
		var errs []error
		for i := range r.Spec.Limits {
			errs = append(errs, outOfLimits(&r.Spec.Limits[i], a.Object)...)
		}
		if len(errs) > 0 {
			return a.Forbidden(utilerrors.NewAggregate(errs))
		}
	}
	return err
}

// applying returns the LimitRanges that apply to a write. An update of a pod cannot change its resources, and an object
// that is being deleted may exceed them.
func (l *LimitRanger) applying(a *admission.Attributes) ([]*corev1.LimitRange, error) {
	if a.Subresource != "" {
		return nil, nil
	}
	switch obj := a.Object.(type) {
	case *corev1.Pod:
		if a.Operation != admissionv1.Create {
			return nil, nil
		}
	case *corev1.PersistentVolumeClaim:
		if obj == nil || obj.DeletionTimestamp != nil {
			return nil, nil
		}
	default:
		return nil, nil
	}
	return l.Ranges(a.Namespace)
}

// setDefaultResources sets the requests and limits that the containers of a pod lack. An annotation names them.
func setDefaultResources(pod *corev1.Pod, limits []corev1.LimitRangeItem) {
	var notes []string
	fill := func(list *corev1.ResourceList, values corev1.ResourceList, note string) {
		var set []string
		for _, name := range sortedKeys(values) {
			if _, ok := (*list)[name]; !ok {
				set = append(set, string(name))
			}
		}
		setDefaultList(list, values)
		if set != nil {
			notes = append(notes, strings.Join(set, ", ")+note)
		}
	}
	i := slices.IndexFunc(limits, func(l corev1.LimitRangeItem) bool { return l.Type == corev1.LimitTypeContainer })
	if i < 0 {
		return
	}
	each := func(what string, containers []corev1.Container) {
		for j := range containers {
			c := &containers[j]
			fill(&c.Resources.Requests, limits[i].DefaultRequest, " request for "+what+" "+c.Name)
			fill(&c.Resources.Limits, limits[i].Default, " limit for "+what+" "+c.Name)
		}
	}
	each("container", pod.Spec.Containers)
	each("init container", pod.Spec.InitContainers)
	if notes != nil {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "kubernetes.io/limit-ranger",
			"LimitRanger plugin set: "+strings.Join(notes, "; "))
	}
}

// outOfLimits returns in what an object does not keep to a limit.
func outOfLimits(l *corev1.LimitRangeItem, obj runtime.Object) (errs []error) {
	switch obj := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		if l.Type != corev1.LimitTypePersistentVolumeClaim {
			return nil
		}
		requests := obj.Spec.Resources.Requests
		for _, name := range sortedKeys(l.Min) {
			errs = append(errs, below(l, name, requests, nil))
		}
		for _, name := range sortedKeys(l.Max) {
			errs = append(errs, requestAbove(l, name, requests, true))
		}
	case *corev1.Pod:
		switch l.Type {
		case corev1.LimitTypeContainer:
			for _, containers := range [][]corev1.Container{obj.Spec.Containers, obj.Spec.InitContainers} {
				for i := range containers {
					r := &containers[i].Resources
					errs = append(errs, notWithin(l, r.Requests, r.Limits)...)
				}
			}
		case corev1.LimitTypePod:
			errs = notWithin(l, podResources(&obj.Spec, requestsOf), podResources(&obj.Spec, limitsOf))
		}
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// notWithin returns in what the requests and limits of a container or a pod do not keep to a limit. Some errors are
// nil.
func notWithin(l *corev1.LimitRangeItem, requests, limits corev1.ResourceList) (errs []error) {
	for _, name := range sortedKeys(l.Min) {
		errs = append(errs, below(l, name, requests, limits))
	}
	for _, name := range sortedKeys(l.Max) {
		errs = append(errs, above(l, name, requests, limits))
	}
	for _, name := range sortedKeys(l.MaxLimitRequestRatio) {
		errs = append(errs, overcommitted(l, name, requests, limits))
	}
	return errs
}

// inOneUnit returns quantities as numbers that can be compared: of thousandths, if none is too large for that.
func inOneUnit(request, limit, bound resource.Quantity) (r, l, b int64) {
	r, l, b = request.Value(), limit.Value(), bound.Value()
	if max(r, l, b) <= resource.MaxMilliValue {
		return request.MilliValue(), limit.MilliValue(), bound.MilliValue()
	}
	return r, l, b
}

func below(l *corev1.LimitRangeItem, name corev1.ResourceName, requests, limits corev1.ResourceList) error {
	bound := l.Min[name]
	request, requested := requests[name]
	limit, limited := limits[name]
	r, most, b := inOneUnit(request, limit, bound)
	rule := fmt.Sprintf("minimum %s usage per %s is %s", name, l.Type, bound.String())
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", rule)
	case r < b:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	case limited && most < b:
		return fmt.Errorf("%s, but limit is %s", rule, limit.String())
	}
	return nil
}

func above(l *corev1.LimitRangeItem, name corev1.ResourceName, requests, limits corev1.ResourceList) error {
	bound := l.Max[name]
	limit, limited := limits[name]
	_, most, b := inOneUnit(requests[name], limit, bound)
	rule := fmt.Sprintf("maximum %s usage per %s is %s", name, l.Type, bound.String())
	switch {
	case !limited:
		return fmt.Errorf("%s.  No limit is specified", rule)
	case most > b:
		return fmt.Errorf("%s, but limit is %s", rule, limit.String())
	}
	return requestAbove(l, name, requests, false)
}

// requestAbove compares a request with the maximum.
func requestAbove(l *corev1.LimitRangeItem, name corev1.ResourceName, requests corev1.ResourceList,
	needed bool,
) error {
	bound := l.Max[name]
	request, requested := requests[name]
	r, _, b := inOneUnit(request, resource.Quantity{}, bound)
	rule := fmt.Sprintf("maximum %s usage per %s is %s", name, l.Type, bound.String())
	switch {
	case !requested && needed:
		return fmt.Errorf("%s.  No request is specified", rule)
	case requested && r > b:
		return fmt.Errorf("%s, but request is %s", rule, request.String())
	}
	return nil
}

// overcommitted compares the ratio of a limit to a request with its maximum.
func overcommitted(l *corev1.LimitRangeItem, name corev1.ResourceName, requests, limits corev1.ResourceList) error {
	bound := l.MaxLimitRequestRatio[name]
	request, limit, _ := inOneUnit(requests[name], limits[name], bound)
	rule := fmt.Sprintf("%s max limit to request ratio per %s is %s", name, l.Type, bound.String())
	switch {
	case request == 0:
		return fmt.Errorf("%s, but no request is specified or request is 0", rule)
	case limit == 0:
		return fmt.Errorf("%s, but no limit is specified or limit is 0", rule)
	}
	if ratio := float64(limit) / float64(request); ratio > bound.AsApproximateFloat64() {
		return fmt.Errorf("%s, but provided ratio is %f", rule, ratio)
	}
	return nil
}
