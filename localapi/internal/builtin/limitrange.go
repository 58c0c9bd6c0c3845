package builtin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// limitRange is what [LimitRanger] applies to pods and claims.
func limitRange() *api.Definition {
	d := namespaced[corev1.LimitRange, corev1.LimitRangeList](corev1.SchemeGroupVersion, "limitranges", "limits")
	d.CreateOnUpdate = true
	d.Default = mutate(func(l *corev1.LimitRange) {
		for i := range l.Spec.Limits {
			defaultLimits(&l.Spec.Limits[i])
		}
	})
	d.Validate = rules(validateLimitRange)
	return d
}

// defaultLimits derives the defaults of containers from the other limits.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_LimitRangeItem.
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateLimitRange.
func validateLimitRange(f verify.Field, r *corev1.LimitRange) {
	seen := sets.New[corev1.LimitType]()
	verify.Each(f, "spec.limits", r.Spec.Limits, func(f verify.Field, l *corev1.LimitRangeItem) {
		validateLimitType(f, l.Type)
		verify.Unique(f, "type", seen, l.Type)
		validateLimits(f, l)
	})
}

func validateLimitType(f verify.Field, t corev1.LimitType) {
	if problems := validation.IsQualifiedName(string(t)); len(problems) > 0 {
		f.Problems("type", t, problems)
		return
	}
	switch t {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
	default:
		f.Reject("type", !strings.Contains(string(t), "/"), t, "must be a standard limit type or fully qualified")
	}
}

func validateLimits(f verify.Field, l *corev1.LimitRangeItem) {
	names := sets.New[corev1.ResourceName]()
	judge := func(field string, list corev1.ResourceList) {
		for _, name := range sortedKeys(list) {
			names.Insert(name)
			rule := validateResourceName
			if l.Type == corev1.LimitTypePod || l.Type == corev1.LimitTypeContainer {
				rule = validateContainerResourceName
			}
			rule(f.Child(field).Key(string(name)), name)
		}
	}
	judge("max", l.Max)
	judge("min", l.Min)
	if l.Type == corev1.LimitTypePod {
		f.Forbid("default", len(l.Default) > 0, "may not be specified when `type` is 'Pod'")
		f.Forbid("defaultRequest", len(l.DefaultRequest) > 0, "may not be specified when `type` is 'Pod'")
	} else {
		judge("default", l.Default)
		judge("defaultRequest", l.DefaultRequest)
	}
	if l.Type == corev1.LimitTypePersistentVolumeClaim {
		_, low := l.Min[corev1.ResourceStorage]
		_, high := l.Max[corev1.ResourceStorage]
		f.Require("limits", low || high,
			"either minimum or maximum storage value is required, but neither was provided")
	}
	judge("maxLimitRequestRatio", l.MaxLimitRequestRatio)
	for _, name := range sets.List(names) {
		validateLimit(f, l, name)
	}
}

func validateLimit(f verify.Field, l *corev1.LimitRangeItem, name corev1.ResourceName) {
	least, most := quantityOf(l.Min, name), quantityOf(l.Max, name)
	var limit, request *resource.Quantity
	if l.Type != corev1.LimitTypePod { // for pods, these are rejected
		limit, request = quantityOf(l.Default, name), quantityOf(l.DefaultRequest, name)
	}
	at := func(field string) verify.Field { return f.Child(field).Key(string(name)) }
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
		at(rule.field).Rejectf("", rule.low != nil && rule.high != nil && rule.low.Cmp(*rule.high) > 0, rule.shown,
			"%s value %s is greater than %s value %s", rule.lowName, rule.low, rule.highName, rule.high)
	}
	validateRatio(at("maxLimitRequestRatio"), quantityOf(l.MaxLimitRequestRatio, name), least, most)
	at("defaultRequest").Rejectf("",
		!overcommits(name) && limit != nil && request != nil && limit.Cmp(*request) != 0, request,
		"default value %s must equal to defaultRequest value %s in %s", limit, request, name)
}

func quantityOf(list corev1.ResourceList, name corev1.ResourceName) *resource.Quantity {
	q, ok := list[name]
	if !ok {
		return nil
	}
	return &q
}

// validateRatio validates the ratio between limit and request against the bounds.
func validateRatio(f verify.Field, ratio, least, most *resource.Quantity) {
	if ratio == nil {
		return
	}
	f.Rejectf("", ratio.Cmp(*resource.NewQuantity(1, resource.DecimalSI)) < 0, ratio, "ratio %s is less than 1", ratio)
	if least == nil || most == nil {
		return
	}
	value, low, high := float64(ratio.Value()), least.Value(), most.Value()
	if ratio.Value() < resource.MaxMilliValue && low < resource.MaxMilliValue && high < resource.MaxMilliValue {
		value, low, high = float64(ratio.MilliValue())/1000, least.MilliValue(), most.MilliValue()
	}
	room := float64(high) / float64(low)
	f.Rejectf("", value > room, ratio, "ratio %s is greater than max/min = %f", ratio, room)
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/helper/helpers.go IsStandardQuotaResourceName.
func isQuotaResource(name corev1.ResourceName) bool {
	return quotaResources.Has(name) || isHugePages(name) ||
		strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/helper/helpers.go IsStandardResourceName.
func isStandardResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceStorage || isQuotaResource(name)
}

// isNativeResource reports whether a resource is Kubernetes' own, and not a device of a driver.
func isNativeResource(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// countedWhole reports whether a resource has no fractions, as objects and devices.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/helper/helpers.go IsIntegerResourceName.
func countedWhole(name corev1.ResourceName) bool {
	if isNativeResource(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return objectCounts.Has(name)
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// validateResourceName requires a resource that Kubernetes knows, or a name with a domain.
func validateResourceName(f verify.Field, name corev1.ResourceName) {
	problems := validation.IsQualifiedName(string(name))
	f.Problems("", name, problems)
	f.Reject("", len(problems) == 0 && !strings.Contains(string(name), "/") && !isStandardResource(name), name,
		"must be a standard resource type or fully qualified")
}

// validateContainerResourceName requires a resource that a container can request.
func validateContainerResourceName(f verify.Field, name corev1.ResourceName) {
	validateResourceName(f, name)
	f.Reject("", !strings.Contains(string(name), "/") && !isContainerResource(name), name,
		"must be a standard resource for containers")
}
