package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// runtimeClass is only stored: a pod that names one gets neither its overhead nor its node selector.
func runtimeClass() *resource.Definition {
	d := typed[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, "runtimeclasses")
	d.NeedsResourceVersion = true
	d.Default = mutate(func(c *nodev1.RuntimeClass) {
		if c.Overhead != nil {
			roundToMilli(c.Overhead.PodFixed)
		}
	})
	d.Validate = check(validateRuntimeClass)
	d.ValidateUpdate = compare(func(c, old *nodev1.RuntimeClass) field.ErrorList {
		return unchanged(c.Handler, old.Handler, field.NewPath("handler"))
	})
	printed(d, func(c *nodev1.RuntimeClass, now time.Time) []cell {
		return []cell{
			nameColumn(c.Name), column("Handler", "string", "", c.Handler), ageColumn(c.CreationTimestamp, now),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/node/validation/validation.go ValidateRuntimeClass.
func validateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	handler := field.NewPath("handler")
	errs := invalid(handler, c.Handler, apivalidation.NameIsDNSLabel(c.Handler, false))
	if c.Handler == "" {
		errs = field.ErrorList{field.Required(handler, "")}
	}
	if c.Overhead != nil {
		errs = append(errs,
			validateResources(&corev1.ResourceRequirements{Limits: c.Overhead.PodFixed}, field.NewPath("overhead"))...)
	}
	if c.Scheduling == nil {
		return errs
	}
	path := field.NewPath("scheduling")
	errs = append(errs, metavalidation.ValidateLabels(c.Scheduling.NodeSelector, path.Child("nodeSelector"))...)
	tolerations := path.Child("tolerations")
	errs = append(errs, validateTolerations(c.Scheduling.Tolerations, tolerations)...)
	seen := sets.New[corev1.Toleration]()
	for i, t := range c.Scheduling.Tolerations {
		key := corev1.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: t.Effect}
		if seen.Has(key) {
			errs = append(errs, field.Duplicate(tolerations.Index(i), shown(t)))
		}
		seen.Insert(key)
	}
	return errs
}
