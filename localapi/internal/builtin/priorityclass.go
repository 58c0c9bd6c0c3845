package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// The classes that every cluster has, and the greatest value that others can have.
const (
	systemPriorityPrefix = "system-"
	greatestPriority     = int32(1_000_000_000)
	systemPriority       = 2 * greatestPriority
)

// SystemPriorityClasses returns the classes that every cluster has. The caller owns the list.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/scheduling/v1/helpers.go.
func SystemPriorityClasses() []*schedulingv1.PriorityClass {
	return []*schedulingv1.PriorityClass{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: systemPriority + 1000,
			Description: "Used for system critical pods that must not be moved from their current node.",
		},
		{
			ObjectMeta: metav1.ObjectMeta{Name: "system-cluster-critical"}, Value: systemPriority,
			Description: "Used for system critical pods that must run in the cluster, " +
				"but can be moved to another node if necessary.",
		},
	}
}

func priorityClass() *resource.Definition {
	d := typed[schedulingv1.PriorityClass, schedulingv1.PriorityClassList](schedulingv1.SchemeGroupVersion,
		"priorityclasses", "pc")
	d.Default = mutate(func(c *schedulingv1.PriorityClass) {
		setDefaultPtr(&c.PreemptionPolicy, corev1.PreemptLowerPriority)
	})
	d.PrepareCreate = func(_ context.Context, obj runtime.Object) { setGeneration(obj, 1) }
	d.Validate = check(validatePriorityClass)
	d.ValidateUpdate = compare(func(c, old *schedulingv1.PriorityClass) field.ErrorList {
		var errs field.ErrorList
		if c.Value != old.Value {
			errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
		}
		return append(errs, immutable(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
	})
	printed(d, func(c *schedulingv1.PriorityClass, now time.Time) []cell {
		doc := schedulingv1.PriorityClass{}.SwaggerDoc()
		return []cell{
			nameColumn(c.Name),
			column("Value", "integer", doc["value"], int64(c.Value)),
			column("Global-Default", "boolean", doc["globalDefault"], c.GlobalDefault),
			ageColumn(c.CreationTimestamp, now),
			column("PreemptionPolicy", "string", doc["preemptionPolicy"], string(ptr.Deref(c.PreemptionPolicy, ""))),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/scheduling/validation/validation.go ValidatePriorityClass.
func validatePriorityClass(c *schedulingv1.PriorityClass) (errs field.ErrorList) {
	if strings.HasPrefix(c.Name, systemPriorityPrefix) {
		if problem := notSystemClass(c); problem != "" {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with 'system-' prefix are reserved for system use only. error: "+problem))
		}
	} else if c.Value > greatestPriority {
		errs = append(errs, field.Forbidden(field.NewPath("value"),
			fmt.Sprintf("maximum allowed value of a user defined priority is %d", greatestPriority)))
	}
	if c.PreemptionPolicy == nil {
		return errs
	}
	return append(errs, oneOf(field.NewPath("preemptionPolicy"), *c.PreemptionPolicy, corev1.PreemptLowerPriority,
		corev1.PreemptNever)...)
}

// notSystemClass returns why c is not one of the classes that every cluster has.
func notSystemClass(c *schedulingv1.PriorityClass) string {
	for _, s := range SystemPriorityClasses() {
		switch {
		case s.Name != c.Name:
		case s.Value != c.Value:
			return fmt.Sprintf("value of %v PriorityClass must be %v", s.Name, s.Value)
		case s.GlobalDefault != c.GlobalDefault:
			return fmt.Sprintf("globalDefault of %v PriorityClass must be %v", s.Name, s.GlobalDefault)
		default:
			return ""
		}
	}
	return c.Name + " is not a known system priority class"
}
