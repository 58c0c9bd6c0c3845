package builtin

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
func runsForever(t *corev1.PodTemplateSpec, kind string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
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
		errs = append(errs,
			metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)...)
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

// counter is a number in a status, with the name that errors give it.
type counter struct {
	name  string
	value int64
}

// validateCounters validates the numbers in the status of a workload. None is negative, no number of pods exceeds the
// number of all pods, and not more are available than ready. The last two of pods are the ready and the available ones.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentStatus,
// ValidateReplicaSetStatus.
func validateCounters(all []counter, replicas int32, pods [3]counter, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, c := range all {
		errs = append(errs, nonnegative(c.value, path.Child(c.name))...)
	}
	for _, c := range pods {
		if c.value > int64(replicas) {
			errs = append(errs, field.Invalid(path.Child(c.name), c.value, "cannot be greater than status.replicas"))
		}
	}
	if ready, available := pods[1], pods[2]; available.value > ready.value {
		errs = append(errs,
			field.Invalid(path.Child(available.name), available.value, "cannot be greater than readyReplicas"))
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
