package builtin

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodSpec validates the spec of a Pod or of a pod template.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePodSpec.
func validatePodSpec(spec *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	if spec.TerminationGracePeriodSeconds == nil {
		errs = append(errs, field.Required(path.Child("terminationGracePeriodSeconds"), ""))
	}
	volumes, volumeErrs := validateVolumes(spec.Volumes, path.Child("volumes"))
	errs = append(errs, volumeErrs...)
	errs = append(errs, validateContainers(spec, volumes, path)...)
	errs = append(errs, oneOf(path.Child("restartPolicy"), spec.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	errs = append(errs, oneOf(path.Child("dnsPolicy"), spec.DNSPolicy,
		corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateGates(spec, path)...)
	errs = append(errs,
		optionalName(spec.ServiceAccountName, apivalidation.NameIsDNSSubdomain, path.Child("serviceAccountName"))...)
	errs = append(errs, optionalName(spec.NodeName, apivalidation.NameIsDNSSubdomain, path.Child("nodeName"))...)
	if s := spec.ActiveDeadlineSeconds; s != nil && (*s < 1 || *s > math.MaxInt32) {
		errs = append(errs,
			field.Invalid(path.Child("activeDeadlineSeconds"), *s, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	errs = append(errs, optionalName(spec.Hostname, apivalidation.NameIsDNSLabel, path.Child("hostname"))...)
	errs = append(errs, optionalName(spec.Subdomain, apivalidation.NameIsDNSLabel, path.Child("subdomain"))...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs,
		optionalName(spec.PriorityClassName, apivalidation.NameIsDNSSubdomain, path.Child("priorityClassName"))...)
	if spec.RuntimeClassName != nil {
		errs = append(errs,
			optionalName(*spec.RuntimeClassName, apivalidation.NameIsDNSSubdomain, path.Child("runtimeClassName"))...)
	}
	if p := spec.PreemptionPolicy; p != nil {
		errs = append(errs,
			oneOf(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	return errs
}

func validateGates(spec *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	for i, gate := range spec.ReadinessGates {
		errs = append(errs,
			qualifiedName(string(gate.ConditionType), path.Child("readinessGates").Index(i).Child("conditionType"))...)
	}
	seen := sets.New[string]()
	for i, gate := range spec.SchedulingGates {
		p := path.Child("schedulingGates").Index(i)
		errs = append(errs, qualifiedName(gate.Name, p)...)
		errs = append(errs, unique(seen, gate.Name, p)...)
	}
	return errs
}

// validateVolumes also returns the names of the volumes that containers may mount.
func validateVolumes(volumes []corev1.Volume, path *field.Path) (sets.Set[string], field.ErrorList) {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range volumes {
		v := &volumes[i]
		p := path.Index(i)
		own := required(v.Name, p.Child("name"), validation.IsDNS1123Label)
		if names.Has(v.Name) {
			own = append(own, field.Duplicate(p.Child("name"), v.Name))
		}
		own = append(own, validateVolumeSource(v, p)...)
		if len(own) == 0 {
			names.Insert(v.Name)
		}
		errs = append(errs, own...)
	}
	return names, errs
}

// validateVolumeSource checks the one field that each common source requires.
func validateVolumeSource(v *corev1.Volume, path *field.Path) field.ErrorList {
	required := func(value string, names ...string) field.ErrorList {
		if value != "" {
			return nil
		}
		return field.ErrorList{field.Required(path.Child(names[0], names[1:]...), "")}
	}
	switch {
	case v.HostPath != nil:
		return required(v.HostPath.Path, "hostPath", "path")
	case v.Secret != nil:
		return required(v.Secret.SecretName, "secret", "secretName")
	case v.ConfigMap != nil:
		return required(v.ConfigMap.Name, "configMap", "name")
	case v.PersistentVolumeClaim != nil:
		return required(v.PersistentVolumeClaim.ClaimName, "persistentVolumeClaim", "claimName")
	case v.CSI != nil:
		return required(v.CSI.Driver, "csi", "driver")
	case v.NFS != nil:
		return append(required(v.NFS.Server, "nfs", "server"), required(v.NFS.Path, "nfs", "path")...)
	}
	return nil
}

// validateTolerations validates each toleration by itself.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateTolerations.
func validateTolerations(tolerations []corev1.Toleration, path *field.Path) (errs field.ErrorList) {
	for i := range tolerations {
		errs = append(errs, validateToleration(&tolerations[i], path.Index(i))...)
	}
	return errs
}

func validateToleration(t *corev1.Toleration, path *field.Path) (errs field.ErrorList) {
	operator := path.Child("operator")
	if t.Key != "" {
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, path.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(operator, t.Operator,
			"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs,
			field.Invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
	}
	switch t.Operator {
	case corev1.TolerationOpEqual, "":
		for _, msg := range validation.IsValidLabelValue(t.Value) {
			errs = append(errs, field.Invalid(operator, t.Value, msg))
		}
	case corev1.TolerationOpExists:
		if t.Value != "" {
			errs = append(errs, field.Invalid(operator, t.Value, "value must be empty when `operator` is 'Exists'"))
		}
	default:
		errs = append(errs, field.NotSupported(operator, t.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	if t.Effect != "" {
		errs = append(errs, oneOf(path.Child("effect"), t.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	return errs
}

// oneOf requires value to be set and among the allowed values.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return supported(path, value, allowed...)
}

// supported requires one of some values.
func supported[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

func nonnegative(value int64, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(value, path)
}

func labelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, path)
}

func dnsLabel(value string, path *field.Path) field.ErrorList {
	return invalid(path, value, validation.IsDNS1123Label(value))
}

func qualifiedName(value string, path *field.Path) field.ErrorList {
	return invalid(path, value, validation.IsQualifiedName(value))
}

func optionalName(value string, rule apivalidation.ValidateNameFunc, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	return invalid(path, value, rule(value, false))
}

// required requires a value that a rule accepts.
func required(value string, path *field.Path, rule func(string) []string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalid(path, value, rule(value))
}

// invalid returns one error for each message.
func invalid(path *field.Path, value any, messages []string) (errs field.ErrorList) {
	for _, msg := range messages {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}
