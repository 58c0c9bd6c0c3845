package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/flyball-dev/flyball/localapi/internal/resource"
)

// limitRange is only stored; it does not change pods.
func limitRange() *api.Definition {
	d := namespaced[corev1.LimitRange, corev1.LimitRangeList](corev1.SchemeGroupVersion, "limitranges", "limits")
	d.CreateOnUpdate = true
	d.Default = mutate(func(l *corev1.LimitRange) {
		for i := range l.Spec.Limits {
			defaultLimits(&l.Spec.Limits[i])
		}
	})
	d.Validate = check(validateLimitRange)
	d.Warnings = func(_, old runtime.Object) []string {
		if old != nil {
			return nil
		}
		return []string{"this server stores LimitRanges and does not apply them to pods"}
	}
	return d
}

// defaultLimits derives the defaults of containers from the other limits.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/defaults.go SetDefaults_LimitRangeItem.
func defaultLimits(l *corev1.LimitRangeItem) {
	if l.Type == corev1.LimitTypeContainer {
		setDefaultList(&l.Default, l.Max)
		setDefaultList(&l.DefaultRequest, l.Default)
		setDefaultList(&l.DefaultRequest, l.Min)
	}
	for _, list := range []corev1.ResourceList{l.Max, l.Min, l.Default, l.DefaultRequest, l.MaxLimitRequestRatio} {
		roundToMilli(list)
	}
}

// setDefaultList adds to list the entries of values that it lacks.
func setDefaultList(list *corev1.ResourceList, values corev1.ResourceList) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	for name, q := range values {
		if _, ok := (*list)[name]; !ok {
			(*list)[name] = q.DeepCopy()
		}
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateLimitRange.
func validateLimitRange(r *corev1.LimitRange) (errs field.ErrorList) {
	seen := sets.New[corev1.LimitType]()
	for i := range r.Spec.Limits {
		path, l := field.NewPath("spec", "limits").Index(i), &r.Spec.Limits[i]
		errs = append(errs, validateLimitType(l.Type, path.Child("type"))...)
		errs = append(errs, unique(seen, l.Type, path.Child("type"))...)
		errs = append(errs, validateLimits(l, path)...)
	}
	return errs
}

func validateLimitType(t corev1.LimitType, path *field.Path) field.ErrorList {
	if errs := invalid(path, t, validation.IsQualifiedName(string(t))); len(errs) > 0 {
		return errs
	}
	switch t {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	if strings.Contains(string(t), "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, t, "must be a standard limit type or fully qualified")}
}

func validateLimits(l *corev1.LimitRangeItem, path *field.Path) (errs field.ErrorList) {
	names := sets.New[corev1.ResourceName]()
	judge := func(field string, list corev1.ResourceList) {
		for _, name := range sortedKeys(list) {
			names.Insert(name)
			rule := validateResourceName
			if l.Type == corev1.LimitTypePod || l.Type == corev1.LimitTypeContainer {
				rule = validateContainerResourceName
			}
			errs = append(errs, rule(name, path.Child(field).Key(string(name)))...)
		}
	}
	judge("max", l.Max)
	judge("min", l.Min)
	if l.Type == corev1.LimitTypePod {
		for _, d := range []struct {
			name string
			list corev1.ResourceList
		}{{"default", l.Default}, {"defaultRequest", l.DefaultRequest}} {
			if len(d.list) > 0 {
				errs = append(errs, field.Forbidden(path.Child(d.name), "may not be specified when `type` is 'Pod'"))
			}
		}
	} else {
		judge("default", l.Default)
		judge("defaultRequest", l.DefaultRequest)
	}
	if l.Type == corev1.LimitTypePersistentVolumeClaim {
		_, low := l.Min[corev1.ResourceStorage]
		_, high := l.Max[corev1.ResourceStorage]
		if !low && !high {
			errs = append(errs, field.Required(path.Child("limits"),
				"either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	judge("maxLimitRequestRatio", l.MaxLimitRequestRatio)
	for _, name := range sets.List(names) {
		errs = append(errs, validateLimit(l, name, path)...)
	}
	return errs
}

// validateLimit validates the limits of one resource.
func validateLimit(l *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) (errs field.ErrorList) {
	least, most := quantityOf(l.Min, name), quantityOf(l.Max, name)
	var limit, request *resource.Quantity
	if l.Type != corev1.LimitTypePod { // for pods, these are rejected
		limit, request = quantityOf(l.Default, name), quantityOf(l.DefaultRequest, name)
	}
	for _, rule := range []struct {
		low, high         *resource.Quantity
		lowName, highName string
		field             string
		shown             *resource.Quantity
	}{
		{least, most, "min", "max", "min", least},
		{least, request, "min", "default request", "defaultRequest", request},
		{request, most, "default request", "max", "defaultRequest", request},
		{request, limit, "default request", "default limit", "defaultRequest", request},
		{least, limit, "min", "default", "default", least},
		{limit, most, "default", "max", "default", limit},
	} {
		if rule.low != nil && rule.high != nil && rule.low.Cmp(*rule.high) > 0 {
			errs = append(errs, field.Invalid(path.Child(rule.field).Key(string(name)), *rule.shown,
				fmt.Sprintf("%s value %s is greater than %s value %s", rule.lowName, rule.low, rule.highName,
					rule.high)))
		}
	}
	errs = append(errs, validateRatio(quantityOf(l.MaxLimitRequestRatio, name), least, most,
		path.Child("maxLimitRequestRatio").Key(string(name)))...)
	if !overcommits(name) && limit != nil && request != nil && limit.Cmp(*request) != 0 {
		errs = append(errs, field.Invalid(path.Child("defaultRequest").Key(string(name)), *request,
			fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit, request, name)))
	}
	return errs
}

func quantityOf(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	q, ok := list[name]
	if !ok {
		return nil
	}
	return &q
}

// validateRatio validates the ratio between limit and request against the bounds.
func validateRatio(ratio, least, most *resource.Quantity, path *field.Path) (errs field.ErrorList) {
	if ratio == nil {
		return nil
	}
	if ratio.Cmp(*resource.NewQuantity(1, resource.DecimalSI)) < 0 {
		errs = append(errs, field.Invalid(path, *ratio, fmt.Sprintf("ratio %s is less than 1", ratio)))
	}
	if least == nil || most == nil {
		return errs
	}
	value, low, high := float64(ratio.Value()), least.Value(), most.Value()
	if ratio.Value() < resource.MaxMilliValue && low < resource.MaxMilliValue && high < resource.MaxMilliValue {
		value, low, high = float64(ratio.MilliValue())/1000, least.MilliValue(), most.MilliValue()
	}
	if room := float64(high) / float64(low); value > room {
		errs = append(errs,
			field.Invalid(path, *ratio, fmt.Sprintf("ratio %s is greater than max/min = %f", ratio, room)))
	}
	return errs
}

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
