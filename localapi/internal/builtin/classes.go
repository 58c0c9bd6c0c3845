package builtin

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
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

func ingressClass() *resource.Definition {
	d := typed[networkingv1.IngressClass, networkingv1.IngressClassList](networkingv1.SchemeGroupVersion,
		"ingressclasses")
	withGeneration(d, "Spec")
	d.Default = mutate(func(c *networkingv1.IngressClass) {
		if c.Spec.Parameters != nil {
			setDefaultPtr(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
		}
	})
	d.Validate = check(validateIngressClass)
	d.ValidateUpdate = compare(func(c, old *networkingv1.IngressClass) field.ErrorList {
		return immutable(c.Spec.Controller, old.Spec.Controller, field.NewPath("spec", "controller"))
	})
	printed(d, ingressClassRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go validateIngressClassSpec.
func validateIngressClass(c *networkingv1.IngressClass) (errs field.ErrorList) {
	const longest = 250
	path := field.NewPath("spec")
	if len(c.Spec.Controller) > longest {
		errs = append(errs, field.TooLong(path.Child("controller"), "", longest))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(path.Child("controller"), c.Spec.Controller)...)
	if c.Spec.Parameters == nil {
		return errs
	}
	return append(errs, validateClassParameters(c.Spec.Parameters, path.Child("parameters"))...)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go
// validateIngressClassParametersReference.
func validateClassParameters(p *networkingv1.IngressClassParametersReference, path *field.Path) (errs field.ErrorList) {
	if p.APIGroup != nil {
		errs = append(errs, invalid(path.Child("apiGroup"), *p.APIGroup, validation.IsDNS1123Subdomain(*p.APIGroup))...)
	}
	errs = append(errs, requiredSegment(p.Kind, path.Child("kind"))...)
	errs = append(errs, requiredSegment(p.Name, path.Child("name"))...)
	at := path.Child("namespace")
	switch scope := ptr.Deref(p.Scope, ""); scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		if p.Namespace == nil {
			return append(errs, field.Required(at, "`parameters.scope` is set to 'Namespace'"))
		}
		return append(errs, invalid(at, *p.Namespace, apivalidation.ValidateNamespaceName(*p.Namespace, false))...)
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			errs = append(errs, field.Forbidden(at, "`parameters.scope` is set to 'Cluster'"))
		}
		return errs
	default:
		return append(errs, field.NotSupported(path.Child("scope"), scope, []string{
			networkingv1.IngressClassParametersReferenceScopeCluster,
			networkingv1.IngressClassParametersReferenceScopeNamespace,
		}))
	}
}

func ingressClassRow(c *networkingv1.IngressClass, now time.Time) []cell {
	name, parameters := c.Name, "<none>"
	if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
		name += " (default)"
	}
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind + "/" + p.Name
		if p.APIGroup != nil {
			parameters = p.Kind + "." + *p.APIGroup + "/" + p.Name
		}
	}
	return []cell{
		nameColumn(name),
		column("Controller", "string", "Controller that is responsible for handling this class", c.Spec.Controller),
		column("Parameters", "string", "A reference to a resource with additional parameters", parameters),
		ageColumn(c.CreationTimestamp, now),
	}
}

func storageClass() *resource.Definition {
	d := typed[storagev1.StorageClass, storagev1.StorageClassList](storagev1.SchemeGroupVersion, "storageclasses", "sc")
	d.DeleteReturnsObject = true
	d.Default = mutate(func(c *storagev1.StorageClass) {
		setDefaultPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		setDefaultPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	})
	d.Validate = check(validateStorageClass)
	d.ValidateUpdate = compare(func(c, old *storagev1.StorageClass) field.ErrorList {
		errs := unchanged(c.Parameters, old.Parameters, field.NewPath("parameters"))
		errs = append(errs, unchanged(c.Provisioner, old.Provisioner, field.NewPath("provisioner"))...)
		errs = append(errs, unchanged(c.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...)
		return append(errs,
			unchanged(c.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
	})
	printed(d, storageClassRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/storage/validation/validation.go ValidateStorageClass.
func validateStorageClass(c *storagev1.StorageClass) (errs field.ErrorList) {
	if c.Provisioner == "" {
		errs = append(errs, field.Required(field.NewPath("provisioner"), ""))
	} else {
		errs = append(errs, qualifiedName(strings.ToLower(c.Provisioner), field.NewPath("provisioner"))...)
	}
	errs = append(errs, validateParameters(c.Parameters, field.NewPath("parameters"))...)
	if p := ptr.Deref(c.ReclaimPolicy, ""); p != "" {
		errs = append(errs, supported(field.NewPath("reclaimPolicy"), p, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRetain)...)
	}
	if c.VolumeBindingMode == nil {
		errs = append(errs, field.Required(field.NewPath("volumeBindingMode"), ""))
	} else {
		errs = append(errs, supported(field.NewPath("volumeBindingMode"), *c.VolumeBindingMode,
			storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	return append(errs, validateTopologies(c.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

func validateParameters(parameters map[string]string, path *field.Path) (errs field.ErrorList) {
	const most, largest = 512, 256 << 10
	if len(parameters) > most {
		return field.ErrorList{field.TooLong(path, "", most)}
	}
	size := 0
	for k, v := range parameters {
		if k == "" {
			errs = append(errs, field.Invalid(path, k, "field can not be empty."))
		}
		size += len(k) + len(v)
	}
	if size > largest {
		errs = append(errs, field.TooLong(path, "", largest))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/storage/validation/validation.go validateAllowedTopologies.
func validateTopologies(terms []corev1.TopologySelectorTerm, path *field.Path) (errs field.ErrorList) {
	var before []map[string]sets.Set[string]
	for i, term := range terms {
		at := path.Index(i).Child("matchLabelExpressions")
		keys := map[string]sets.Set[string]{}
		for j, r := range term.MatchLabelExpressions {
			values := at.Index(j).Child("values")
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(values, ""))
			}
			seen := sets.New[string]()
			for k, v := range r.Values {
				errs = append(errs, unique(seen, v, values.Index(k))...)
			}
			errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Index(j).Child("key"))...)
			if _, ok := keys[r.Key]; ok {
				errs = append(errs, field.Duplicate(at.Index(j).Child("key"), r.Key))
			}
			keys[r.Key] = seen
		}
		for _, b := range before {
			if reflect.DeepEqual(b, keys) {
				errs = append(errs, field.Duplicate(at, ""))
			}
		}
		before = append(before, keys)
	}
	return errs
}

func storageClassRow(c *storagev1.StorageClass, now time.Time) []cell {
	name, doc := c.Name, storagev1.StorageClass{}.SwaggerDoc()
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	return []cell{
		nameColumn(name),
		column("Provisioner", "string", doc["provisioner"], c.Provisioner),
		column("ReclaimPolicy", "string", doc["reclaimPolicy"],
			string(ptr.Deref(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))),
		column("VolumeBindingMode", "string", doc["volumeBindingMode"],
			string(ptr.Deref(c.VolumeBindingMode, storagev1.VolumeBindingImmediate))),
		column("AllowVolumeExpansion", "string", doc["allowVolumeExpansion"], ptr.Deref(c.AllowVolumeExpansion, false)),
		ageColumn(c.CreationTimestamp, now),
	}
}
