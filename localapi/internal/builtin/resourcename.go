package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// objectCounts are the resources that count objects.
var objectCounts = sets.New(
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
)

// quotaResources are Kubernetes' own resources that a quota can limit.
var quotaResources = objectCounts.Union(sets.New(
	corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage,
	corev1.ResourceRequestsEphemeralStorage,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
))

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/helper/helpers.go IsStandardQuotaResourceName.
func isQuotaResource(name corev1.ResourceName) bool {
	return quotaResources.Has(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/helper/helpers.go IsStandardResourceName.
func isStandardResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceStorage || isQuotaResource(name)
}

// isNativeResource reports whether a resource is Kubernetes' own, and not a device of a driver.
func isNativeResource(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// countedWhole reports whether a resource has no fractions, as objects and devices.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/helper/helpers.go IsIntegerResourceName.
func countedWhole(name corev1.ResourceName) bool {
	if isNativeResource(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return objectCounts.Has(name)
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// validateResourceName requires a resource that Kubernetes knows, or a name with a domain.
func validateResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := invalid(path, name, validation.IsQualifiedName(string(name)))
	if len(errs) == 0 && !strings.Contains(string(name), "/") && !isStandardResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

// validateContainerResourceName requires a resource that a container can request.
func validateContainerResourceName(name corev1.ResourceName, path *field.Path) field.ErrorList {
	errs := validateResourceName(name, path)
	if !strings.Contains(string(name), "/") && !isContainerResource(name) {
		errs = append(errs, field.Invalid(path, name, "must be a standard resource for containers"))
	}
	return errs
}
