package builtin

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// scalable is the part of a workload that the scale subresource shows.
type scalable struct {
	meta     *metav1.ObjectMeta
	replicas **int32 // spec.replicas
	current  int32   // status.replicas
	selector *metav1.LabelSelector
}

// withScale makes scale the only subresource of a kind. view reads an object. A write sets the number of replicas, and
// increments the generation if the number changes.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/apps/deployment/storage/storage.go ScaleREST.
func withScale[T runtime.Object](d *resource.Definition, view func(T) scalable) {
	d.Subresources = map[string]resource.Subresource{"scale": {
		Kind:  autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
		New:   func() runtime.Object { return &autoscalingv1.Scale{} },
		Verbs: []string{"get", "patch", "update"},

		Replicas: fieldpath.MakePathOrDie("spec", "replicas"),
		Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
			return projectScale(view(obj.(T)))
		},
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			return mergeScale(view(obj.(T)), sub.(*autoscalingv1.Scale), d.GroupResource())
		},
	}}
}

func projectScale(w scalable) (runtime.Object, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.meta.Name, Namespace: w.meta.Namespace, UID: w.meta.UID,
			ResourceVersion: w.meta.ResourceVersion, CreationTimestamp: w.meta.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicasOf(*w.replicas))},
		Status: autoscalingv1.ScaleStatus{Replicas: w.current, Selector: selector.String()},
	}, nil
}

func mergeScale(w scalable, scale *autoscalingv1.Scale, gr schema.GroupResource) error {
	if errs := nonnegative(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")); len(errs) > 0 {
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), w.meta.Name, errs)
	}
	if err := checkPreconditions(w.meta, scale.UID, ""); err != nil {
		gr.Resource += "/scale"
		return apierrors.NewConflict(gr, w.meta.Name, err)
	}
	w.meta.ResourceVersion = scale.ResourceVersion
	if *w.replicas == nil || **w.replicas != scale.Spec.Replicas {
		replicas := scale.Spec.Replicas
		*w.replicas = &replicas
		w.meta.Generation++
	}
	return nil
}

// preconditionError means that a request was meant for another object, or for another version of it.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/interfaces.go Preconditions.Check.
type preconditionError struct {
	what       string // "UID" or "ResourceVersion"
	want, have any
}

func (e preconditionError) Error() string {
	return fmt.Sprintf("Precondition failed: %s in precondition: %v, %s in object meta: %v", e.what, e.want, e.what,
		e.have)
}

// checkPreconditions compares a request's preconditions with obj. Empty ones hold.
func checkPreconditions(obj metav1.Object, uid types.UID, resourceVersion string) error {
	if uid != "" && uid != obj.GetUID() {
		return preconditionError{"UID", uid, obj.GetUID()}
	}
	if resourceVersion != "" && resourceVersion != obj.GetResourceVersion() {
		return preconditionError{"ResourceVersion", resourceVersion, obj.GetResourceVersion()}
	}
	return nil
}

// validateTemplate validates a pod template by itself.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePodTemplateSpec.
func validateTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, validatePodSpec(&t.Spec, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"),
			"ephemeral containers not allowed in pod template"))
	}
	return errs
}

// workload is what the rules of types with a pod template and a selector have to know of the type.
type workload struct {
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	name     string // in the error for an empty selector, "deployment"
	kind     string // in the error for a deadline, "ReplicaSet"
}

// validateWorkload validates a selector, that it selects the pods of its own template, and the template of pods that
// run for ever. path is that of the spec.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentSpec,
// ValidatePodTemplateSpecForReplicaSet.
func validateWorkload(w workload, path *field.Path) field.ErrorList {
	errs, ok := validateSelector(w, path)
	if !ok {
		return errs
	}
	template := path.Child("template")
	errs = append(errs, validateTemplate(w.template, template)...)
	return append(errs, runsForever(w.template, w.kind, template)...)
}

// runsForever requires that a template's pods are restarted and have no deadline.
func runsForever(t *corev1.PodTemplateSpec, kind string, path *field.Path) (errs field.ErrorList) {
	if p := t.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), p,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs,
			field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+
				" is not Supported"))
	}
	return errs
}

// validateSelector validates a selector and what it selects. ok is false if there is no valid selector.
func validateSelector(w workload, path *field.Path) (errs field.ErrorList, ok bool) {
	s, t := w.selector, w.template
	at := path.Child("selector")
	switch {
	case s == nil && w.kind != "DaemonSet": // for a DaemonSet, the real server only reports a mismatch
		errs = append(errs, field.Required(at, ""))
	case s != nil:
		errs = append(errs, labelSelector(s, at)...)
		if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(at, s, "empty selector is invalid for "+w.name))
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return append(errs, field.Invalid(at, s, "invalid label selector")), false
	}
	if (!selector.Empty() || w.kind == "DaemonSet") && !selector.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), t.Labels,
			"`selector` does not match template `labels`"))
	}
	return errs, true
}

func immutable(value, old any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

// unchanged is immutable for a field whose rule the real server declares: the error does not contain the value.
func unchanged(value, old any, path *field.Path) field.ErrorList {
	errs := immutable(value, old, path)
	for _, err := range errs {
		err.BadValue = nil
	}
	return errs
}

// nonnegatives requires that the named numbers in the struct that of points to are not negative.
func nonnegatives(of any, path *field.Path, names ...string) (errs field.ErrorList) {
	for _, name := range names {
		errs = append(errs, nonnegative(number(of, name), path.Child(name))...)
	}
	return errs
}

// number returns the number that a struct has under a name in JSON; 0 if it is missing.
func number(of any, name string) int64 {
	v := reflect.ValueOf(of).Elem().FieldByName(strings.ToUpper(name[:1]) + name[1:])
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return 0
	}
	return reflect.Indirect(v).Int()
}

// validateCounters validates the numbers in the status of a workload. None is negative, no number of pods exceeds the
// number of all pods, and not more are available than ready. labeled is the number that the type has besides these two.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentStatus,
// ValidateReplicaSetStatus.
func validateCounters(status any, labeled string, all ...string) field.ErrorList {
	path := field.NewPath("status")
	errs := nonnegatives(status, path, all...)
	for _, pods := range []string{labeled, "readyReplicas", "availableReplicas"} {
		if n := number(status, pods); n > number(status, "replicas") {
			errs = append(errs, field.Invalid(path.Child(pods), n, "cannot be greater than status.replicas"))
		}
	}
	if n := number(status, "availableReplicas"); n > number(status, "readyReplicas") {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), n, "cannot be greater than readyReplicas"))
	}
	return errs
}

// defaultReplicas sets the two defaults that all scalable apps share.
func defaultReplicas(replicas, historyLimit **int32) {
	setDefaultPtr(replicas, 1)
	if historyLimit != nil {
		setDefaultPtr(historyLimit, 10)
	}
}

// selectorString returns a selector as a Scale and the SELECTOR column print it.
func selectorString(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "<invalid>"
	}
	return selector.String()
}
