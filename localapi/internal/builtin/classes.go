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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// The classes that every cluster has, and the greatest value that others can have.
const (
	systemPriorityPrefix = "system-"
	greatestPriority     = int32(1_000_000_000)
	systemPriority       = 2 * greatestPriority
)

// SystemPriorityClasses returns the classes that every cluster has. The caller owns the list.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/scheduling/v1/helpers.go.
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
	d.PrepareCreate = func(_ context.Context, obj runtime.Object) { resource.Meta(obj).SetGeneration(1) }
	d.Validate = rules(validatePriorityClass)
	d.ValidateUpdate = updateRules(func(f verify.Field, c, old *schedulingv1.PriorityClass) {
		f.Forbid("value", c.Value != old.Value, "may not be changed in an update.")
		f.Immutable("preemptionPolicy", c.PreemptionPolicy, old.PreemptionPolicy)
	})
	listed(d, func(c *schedulingv1.PriorityClass) []cell {
		doc := schedulingv1.PriorityClass{}.SwaggerDoc()
		return []cell{
			column("Value", "integer", doc["value"], int64(c.Value)),
			column("Global-Default", "boolean", doc["globalDefault"], c.GlobalDefault),
			ageCell,
			column("PreemptionPolicy", "string", doc["preemptionPolicy"], string(ptr.Deref(c.PreemptionPolicy, ""))),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/scheduling/validation/validation.go ValidatePriorityClass.
func validatePriorityClass(f verify.Field, c *schedulingv1.PriorityClass) {
	if strings.HasPrefix(c.Name, systemPriorityPrefix) {
		problem := notSystemClass(c)
		f.Forbid("metadata.name", problem != "",
			"priority class names with 'system-' prefix are reserved for system use only. error: "+problem)
	} else if c.Value > greatestPriority {
		f.Forbid("value", true, fmt.Sprintf("maximum allowed value of a user defined priority is %d", greatestPriority))
	}
	if p := c.PreemptionPolicy; p != nil {
		verify.OneOf(f, "preemptionPolicy", *p, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
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

// runtimeClass is what [PodAdmission] applies to pods. No node here has handlers.
func runtimeClass() *resource.Definition {
	d := typed[nodev1.RuntimeClass, nodev1.RuntimeClassList](nodev1.SchemeGroupVersion, "runtimeclasses")
	d.NeedsResourceVersion = true
	d.Default = mutate(func(c *nodev1.RuntimeClass) {
		if c.Overhead != nil {
			roundToMilli(c.Overhead.PodFixed)
		}
	})
	d.Validate = rules(validateRuntimeClass)
	d.ValidateUpdate = fixed(verify.Field.Unchanged, "handler")
	listed(d, func(c *nodev1.RuntimeClass) []cell {
		return []cell{column("Handler", "string", "", c.Handler)}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/node/validation/validation.go ValidateRuntimeClass.
func validateRuntimeClass(f verify.Field, c *nodev1.RuntimeClass) {
	f.RequireMatch("handler", c.Handler, validation.IsDNS1123Label)
	if c.Overhead != nil {
		validateResources(f.Child("overhead"), &corev1.ResourceRequirements{Limits: c.Overhead.PodFixed})
	}
	if c.Scheduling == nil {
		return
	}
	f.Labels("scheduling.nodeSelector", c.Scheduling.NodeSelector)
	verify.Each(f, "scheduling.tolerations", c.Scheduling.Tolerations, validateToleration)
	seen := sets.New[corev1.Toleration]()
	verify.Each(f, "scheduling.tolerations", c.Scheduling.Tolerations, func(f verify.Field, t *corev1.Toleration) {
		key := corev1.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: t.Effect}
		verify.UniqueAs(f, "", seen, key, shown(t))
	})
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
	d.Validate = rules(validateIngressClass)
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.controller")
	printed(d, ingressClassRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go validateIngressClassSpec.
func validateIngressClass(f verify.Field, c *networkingv1.IngressClass) {
	const longest = 250
	f.Short("spec.controller", len(c.Spec.Controller), longest)
	f.Add(validation.IsDomainPrefixedPath(f.Path("spec.controller"), c.Spec.Controller)...)
	if c.Spec.Parameters != nil {
		validateClassParameters(f.Child("spec.parameters"), c.Spec.Parameters)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go
// validateIngressClassParametersReference.
func validateClassParameters(f verify.Field, p *networkingv1.IngressClassParametersReference) {
	validateReference(f, p.APIGroup, p.Kind, p.Name)
	switch scope := ptr.Deref(p.Scope, ""); scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		f.Require("namespace", p.Namespace != nil, "`parameters.scope` is set to 'Namespace'")
		f.MatchPointer("namespace", p.Namespace, validation.IsDNS1123Label)
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		f.Forbid("namespace", p.Namespace != nil, "`parameters.scope` is set to 'Cluster'")
	default:
		verify.Supported(f, "scope", scope, networkingv1.IngressClassParametersReferenceScopeCluster,
			networkingv1.IngressClassParametersReferenceScopeNamespace)
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
	d.Validate = rules(validateStorageClass)
	d.ValidateUpdate = fixed(verify.Field.Unchanged, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
	printed(d, storageClassRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/storage/validation/validation.go ValidateStorageClass.
func validateStorageClass(f verify.Field, c *storagev1.StorageClass) {
	f.RequireMatch("provisioner", strings.ToLower(c.Provisioner), validation.IsQualifiedName)
	validateParameters(f, c.Parameters)
	if p := ptr.Deref(c.ReclaimPolicy, ""); p != "" {
		verify.Supported(f, "reclaimPolicy", p, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRetain)
	}
	f.Require("volumeBindingMode", c.VolumeBindingMode != nil, "")
	verify.SupportedPointer(f, "volumeBindingMode", c.VolumeBindingMode, storagev1.VolumeBindingImmediate,
		storagev1.VolumeBindingWaitForFirstConsumer)
	validateTopologies(f, c.AllowedTopologies)
}

func validateParameters(f verify.Field, parameters map[string]string) {
	const most, largest = 512, 256 << 10
	if f.Short("parameters", len(parameters), most); len(parameters) > most {
		return
	}
	size := 0
	for k, v := range parameters {
		f.Reject("parameters", k == "", k, "field can not be empty.")
		size += len(k) + len(v)
	}
	f.Short("parameters", size, largest)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/storage/validation/validation.go validateAllowedTopologies.
func validateTopologies(f verify.Field, terms []corev1.TopologySelectorTerm) {
	var before []map[string]sets.Set[string]
	verify.Each(f, "allowedTopologies", terms, func(f verify.Field, term *corev1.TopologySelectorTerm) {
		keys := map[string]sets.Set[string]{}
		verify.Each(f, "matchLabelExpressions", term.MatchLabelExpressions, func(f verify.Field,
			r *corev1.TopologySelectorLabelRequirement,
		) {
			f.Require("values", len(r.Values) > 0, "")
			seen := sets.New[string]()
			verify.Each(f, "values", r.Values, func(f verify.Field, v *string) { verify.Unique(f, "", seen, *v) })
			f.Add(metavalidation.ValidateLabelName(r.Key, f.Path("key"))...)
			f.Duplicate("key", keys[r.Key] != nil, r.Key)
			keys[r.Key] = seen
		})
		for _, b := range before {
			f.Duplicate("matchLabelExpressions", reflect.DeepEqual(b, keys), "")
		}
		before = append(before, keys)
	})
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
