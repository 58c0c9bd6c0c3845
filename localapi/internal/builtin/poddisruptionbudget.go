package builtin

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func podDisruptionBudget() *resource.Definition {
	d := namespaced[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion,
		"poddisruptionbudgets", "pdb")
	withStatus(d)
	withGeneration(d, "Spec")
	d.NeedsResourceVersion = true
	d.Validate = check(validateBudget)
	d.ValidateStatusUpdate = compare(validateBudgetStatus)
	printed(d, func(b *policyv1.PodDisruptionBudget, now time.Time) []cell {
		return []cell{
			nameColumn(b.Name),
			column("Min Available", "string", "The minimum number of pods that must be available.",
				intOrNA(b.Spec.MinAvailable)),
			column("Max Unavailable", "string", "The maximum number of pods that may be unavailable.",
				intOrNA(b.Spec.MaxUnavailable)),
			column("Allowed Disruptions", "integer", "Calculated number of pods that may be disrupted at this time.",
				int64(b.Status.DisruptionsAllowed)),
			ageColumn(b.CreationTimestamp, now),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/policy/validation/validation.go ValidatePodDisruptionBudgetSpec.
func validateBudget(b *policyv1.PodDisruptionBudget) (errs field.ErrorList) {
	path, spec := field.NewPath("spec"), &b.Spec
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(path, shown(spec), "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateShare(spec.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, validateShare(spec.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, labelSelector(spec.Selector, path.Child("selector"))...)
	switch policy := ptr.Deref(spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow); policy {
	case policyv1.AlwaysAllow, policyv1.IfHealthyBudget:
	default:
		errs = append(errs, field.NotSupported(path.Child("unhealthyPodEvictionPolicy"), policy,
			[]policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/policy/validation/validation.go ValidatePodDisruptionBudgetStatusUpdate.
func validateBudgetStatus(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	path, s := field.NewPath("status"), &b.Status
	errs := metavalidation.ValidateConditions(s.Conditions, path.Child("conditions"))
	return append(errs, nonnegatives(s, path, "disruptionsAllowed", "currentHealthy", "desiredHealthy",
		"expectedPods")...)
}

func validateShare(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	errs := validateIntOrPercent(*v, path)
	if n, isPercent := intOrPercent(*v); isPercent && n > 100 {
		errs = append(errs, field.Invalid(path, *v, "must not be greater than 100%"))
	}
	return errs
}

func intOrNA(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
}
