package builtin

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateTemplate judges a pod template by itself.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePodTemplateSpec.
func validateTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, validatePodSpec(&t.Spec, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return errs
}

// validateSelector judges the selector of a workload and that it selects the pods of its own template.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentSpec, whose message for an
// empty selector ReplicaSets use word by word.
func validateSelector(s *metav1.LabelSelector, t *corev1.PodTemplateSpec, emptyMessage string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("selector")
	if s == nil {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)...)
		if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(at, s, emptyMessage))
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return append(errs, field.Invalid(at, s, "invalid label selector"))
	}
	if !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	return errs
}

// validateEndlessTemplate judges the template of a workload that keeps its pods running for ever; owner is named in the
// refusal of a deadline.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidatePodTemplateSpecForReplicaSet.
func validateEndlessTemplate(t *corev1.PodTemplateSpec, owner string, path *field.Path) field.ErrorList {
	errs := validateTemplate(t, path)
	if p := t.Spec.RestartPolicy; p != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("spec", "restartPolicy"), p, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+owner+" is not Supported"))
	}
	return errs
}

func immutable(value, old any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

// count is a status counter with the name that errors give it.
type count struct {
	name  string
	value int32
}

// validateCounts judges status counters: none is negative and none counts more pods than there are.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentStatus, ValidateReplicaSetStatus.
func validateCounts(replicas, ready, available int32, others []count, path *field.Path) field.ErrorList {
	const tooMany = "cannot be greater than status.replicas"
	all := append([]count{{"readyReplicas", ready}, {"availableReplicas", available}}, others...)
	errs := nonnegative(int64(replicas), path.Child("replicas"))
	for _, c := range all {
		errs = append(errs, nonnegative(int64(c.value), path.Child(c.name))...)
	}
	for _, c := range all {
		if c.value > replicas {
			errs = append(errs, field.Invalid(path.Child(c.name), c.value, tooMany))
		}
	}
	if available > ready {
		errs = append(errs, field.Invalid(path.Child("availableReplicas"), available, "cannot be greater than readyReplicas"))
	}
	return errs
}

// defaultReplicas are the two defaults that all scalable apps share.
func defaultReplicas(replicas, historyLimit **int32) {
	setDefaultPtr(replicas, 1)
	if historyLimit != nil {
		setDefaultPtr(historyLimit, 10)
	}
}

// selectorString prints a selector the way a Scale and the SELECTOR column do.
func selectorString(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "<invalid>"
	}
	return selector.String()
}
