package builtin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/flyball-dev/flyball/localapi/internal/resource"
)

// resourceQuota is only stored and limits nothing, because no controller here counts usage.
func resourceQuota() *api.Definition {
	d := namespaced[corev1.ResourceQuota, corev1.ResourceQuotaList](corev1.SchemeGroupVersion, "resourcequotas",
		"quota")
	withStatus(d)
	d.DeleteReturnsObject = true
	d.Default = mutate(func(q *corev1.ResourceQuota) {
		roundToMilli(q.Spec.Hard)
		roundToMilli(q.Status.Hard)
		roundToMilli(q.Status.Used)
	})
	d.Validate = check(validateQuota)
	d.ValidateUpdate = compare(validateQuotaUpdate)
	d.ValidateStatusUpdate = compare(validateQuotaStatus)
	d.Warnings = quotaWarnings
	printed(d, quotaRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateResourceQuotaSpec.
func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	path := field.NewPath("spec")
	errs := quantities(q.Spec.Hard, path.Child("hard"))
	errs = append(errs, validateScopes(q.Spec.Scopes, &q.Spec, path.Child("scopes"))...)
	if q.Spec.ScopeSelector == nil {
		return errs
	}
	at := path.Child("scopeSelector", "matchExpressions")
	var scopes []corev1.ResourceQuotaScope
	for _, r := range q.Spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		errs = append(errs, validateScopeRequirement(r, &q.Spec, at)...)
	}
	return append(errs, conflictingScopes(scopes, q.Spec.Scopes, at)...)
}

// quantities validates amounts of resources that a quota can limit.
func quantities(list corev1.ResourceList, path *field.Path) (errs field.ErrorList) {
	for _, name := range sortedKeys(list) {
		q, at := list[name], path.Key(string(name))
		errs = append(errs, validateResourceName(name, at)...)
		if !strings.Contains(string(name), "/") && !isQuotaResource(name) {
			errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
		}
		if q.Sign() < 0 {
			errs = append(errs, field.Invalid(at, q.String(), apivalidation.IsNegativeErrorMsg))
		}
		if countedWhole(name) && q.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(at, q, "must be an integer"))
		}
	}
	return errs
}

// quotaScopes are the existing scopes, with the resources that a quota of the scope can limit.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/helper/helpers.go IsResourceQuotaScopeValidForResource.
var quotaScopes = func() map[corev1.ResourceQuotaScope]sets.Set[corev1.ResourceName] {
	pods := sets.New(corev1.ResourcePods)
	compute := pods.Clone().Insert(corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceLimitsCPU,
		corev1.ResourceLimitsMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory)
	return map[corev1.ResourceQuotaScope]sets.Set[corev1.ResourceName]{
		corev1.ResourceQuotaScopeBestEffort:                pods,
		corev1.ResourceQuotaScopeTerminating:               compute,
		corev1.ResourceQuotaScopeNotTerminating:            compute,
		corev1.ResourceQuotaScopeNotBestEffort:             compute,
		corev1.ResourceQuotaScopePriorityClass:             compute,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity: compute,
		corev1.ResourceQuotaScopeVolumeAttributesClass: sets.New(
			corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage),
	}
}()

// fitsScope checks that a quota limits only resources of its scope. what is its name in errors.
func fitsScope(
	scope corev1.ResourceQuotaScope, spec *corev1.ResourceQuotaSpec, path *field.Path, what any,
) (errs field.ErrorList) {
	fits, ok := quotaScopes[scope]
	if !ok {
		return nil
	}
	for _, name := range sortedKeys(spec.Hard) {
		if isQuotaResource(name) && !fits.Has(name) {
			errs = append(errs, field.Invalid(path, what, "unsupported scope applied to resource"))
		}
	}
	return errs
}

func validateScopes(
	scopes []corev1.ResourceQuotaScope, spec *corev1.ResourceQuotaSpec, path *field.Path,
) (errs field.ErrorList) {
	for _, scope := range scopes {
		if _, ok := quotaScopes[scope]; !ok {
			errs = append(errs, field.Invalid(path, scopes, "unsupported scope"))
		}
		errs = append(errs, fitsScope(scope, spec, path, scopes)...)
	}
	return append(errs, conflictingScopes(scopes, scopes, path)...)
}

func conflictingScopes(scopes, shown []corev1.ResourceQuotaScope, path *field.Path) (errs field.ErrorList) {
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			errs = append(errs, field.Invalid(path, shown, "conflicting scopes"))
		}
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateScopedResourceSelectorRequirement.
func validateScopeRequirement(
	r corev1.ScopedResourceSelectorRequirement, spec *corev1.ResourceQuotaSpec, path *field.Path,
) (errs field.ErrorList) {
	if _, ok := quotaScopes[r.ScopeName]; !ok {
		errs = append(errs, field.Invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope"))
	}
	errs = append(errs, fitsScope(r.ScopeName, spec, path, shown(spec.ScopeSelector))...)
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopeTerminating,
		corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		if r.Operator != corev1.ScopeSelectorOpExists {
			errs = append(errs, field.Invalid(path.Child("operator"), r.Operator,
				"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "+
					"ResourceQuotaScopeNotTerminating, "+
					"ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "+
					"ResourceQuotaScopeCrossNamespacePodAffinity"))
		}
	}
	values := path.Child("values")
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(values,
				"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Invalid(values, r.Values,
				"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateResourceQuotaUpdate.
func validateQuotaUpdate(q, old *corev1.ResourceQuota) field.ErrorList {
	if sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "scopes"), q.Spec.Scopes,
		apivalidation.FieldImmutableErrorMsg)}
}

func validateQuotaStatus(q, _ *corev1.ResourceQuota) field.ErrorList {
	path := field.NewPath("status")
	return append(quantities(q.Status.Hard, path.Child("hard")), quantities(q.Status.Used, path.Child("used"))...)
}

// quotaWarnings returns the real server's warnings about a new quota, and one that it is not enforced.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/resourcequota/strategy.go WarningsOnCreate.
func quotaWarnings(obj, old runtime.Object) []string {
	if old != nil {
		return nil
	}
	hard := obj.(*corev1.ResourceQuota).Spec.Hard
	var warnings []string
	for _, name := range []corev1.ResourceName{
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceStorage, corev1.ResourceEphemeralStorage,
	} {
		requests, limits := "requests."+name, "limits."+name
		request, ok := hard[requests]
		if !ok && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			requests = name
			request, ok = hard[requests]
		}
		if limit, limited := hard[limits]; ok && limited && request.Cmp(limit) > 0 {
			warnings = append(warnings,
				fmt.Sprintf("ResourceQuota %s (%s) should be less than %s (%s)", requests, amount(request), limits,
					amount(limit)))
		}
	}
	return append(warnings, "this server stores ResourceQuotas and does not enforce them")
}

func amount(q resource.Quantity) string { return q.String() }

func quotaRow(q *corev1.ResourceQuota, now time.Time) []cell {
	var requests, limits []string
	for _, name := range sortedKeys(q.Status.Hard) {
		text := fmt.Sprintf("%s: %s/%s", name, amount(q.Status.Used[name]), amount(q.Status.Hard[name]))
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []cell{
		nameColumn(q.Name),
		column("Request", "string", "Request represents a minimum amount of cpu/memory that a container may consume.",
			strings.Join(requests, ", ")),
		column("Limit", "string", "Limits control the maximum amount of cpu/memory that a container may use "+
			"independent of contention on the node.", strings.Join(limits, ", ")),
		ageColumn(q.CreationTimestamp, now),
	}
}
