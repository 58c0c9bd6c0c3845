package builtin

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func podDisruptionBudget() *resource.Definition {
	d := namespaced[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](policyv1.SchemeGroupVersion,
		"poddisruptionbudgets", "pdb")
	withStatus(d)
	withGeneration(d, "Spec")
	d.NeedsResourceVersion = true
	d.Validate = rules(validateBudget)
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, b, _ *policyv1.PodDisruptionBudget) {
		f.Conditions("status.conditions", b.Status.Conditions)
		nonnegatives(f.Child("status"), &b.Status, "disruptionsAllowed", "currentHealthy", "desiredHealthy",
			"expectedPods")
	})
	listed(d, func(b *policyv1.PodDisruptionBudget) []cell {
		return []cell{
			column("Min Available", "string", "The minimum number of pods that must be available.",
				intOrNA(b.Spec.MinAvailable)),
			column("Max Unavailable", "string", "The maximum number of pods that may be unavailable.",
				intOrNA(b.Spec.MaxUnavailable)),
			column("Allowed Disruptions", "integer", "Calculated number of pods that may be disrupted at this time.",
				int64(b.Status.DisruptionsAllowed)),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/policy/validation/validation.go ValidatePodDisruptionBudgetSpec.
func validateBudget(f verify.Field, b *policyv1.PodDisruptionBudget) {
	f, spec := f.Child("spec"), &b.Spec
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		f.Reject("", true, shown(spec), "minAvailable and maxUnavailable cannot be both set")
	}
	validateShare(f, "minAvailable", spec.MinAvailable)
	validateShare(f, "maxUnavailable", spec.MaxUnavailable)
	f.LabelSelector("selector", spec.Selector)
	verify.SupportedPointer(f, "unhealthyPodEvictionPolicy", spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow,
		policyv1.IfHealthyBudget)
}

func validateShare(f verify.Field, name string, v *intstr.IntOrString) {
	if v != nil {
		validateIntOrPercent(f, name, *v)
		n, isPercent := intOrPercent(*v)
		f.Reject(name, isPercent && n > 100, v, "must not be greater than 100%")
	}
}

func intOrNA(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
}
