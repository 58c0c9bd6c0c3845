package builtin

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	api "github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// resourceQuota is what [Quota] enforces.
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
	d.Validate = rules(validateQuota)
	// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateResourceQuotaUpdate.
	d.ValidateUpdate = updateRules(func(f verify.Field, q, old *corev1.ResourceQuota) {
		f.Reject("spec.scopes", !sets.New(q.Spec.Scopes...).Equal(sets.New(old.Spec.Scopes...)), q.Spec.Scopes,
			apivalidation.FieldImmutableErrorMsg)
	})
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, q, _ *corev1.ResourceQuota) {
		validateQuantities(f.Child("status.hard"), q.Status.Hard)
		validateQuantities(f.Child("status.used"), q.Status.Used)
	})
	d.Warnings = quotaWarnings
	listed(d, quotaRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateResourceQuotaSpec.
func validateQuota(f verify.Field, q *corev1.ResourceQuota) {
	f, spec := f.Child("spec"), &q.Spec
	validateQuantities(f.Child("hard"), spec.Hard)
	validateScopes(f.Child("scopes"), spec)
	if spec.ScopeSelector == nil {
		return
	}
	f = f.Child("scopeSelector.matchExpressions")
	var scopes []corev1.ResourceQuotaScope
	for _, r := range spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		validateScopeRequirement(f, r, spec)
	}
	conflictingScopes(f, scopes, spec.Scopes)
}

// validateQuantities validates amounts of resources that a quota can limit.
func validateQuantities(f verify.Field, list corev1.ResourceList) {
	for _, name := range sortedKeys(list) {
		q, f := list[name], f.Key(string(name))
		validateResourceName(f, name)
		f.Reject("", !strings.Contains(string(name), "/") && !isQuotaResource(name), name,
			"must be a standard resource for quota")
		f.Reject("", q.Sign() < 0, q.String(), apivalidation.IsNegativeErrorMsg)
		f.Reject("", countedWhole(name) && q.MilliValue()%1000 != 0, q, "must be an integer")
	}
}

// quotaScopes are the existing scopes, with the resources that a quota of the scope can limit.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/helper/helpers.go IsResourceQuotaScopeValidForResource.
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
func fitsScope(f verify.Field, scope corev1.ResourceQuotaScope, spec *corev1.ResourceQuotaSpec, what any) {
	fits, ok := quotaScopes[scope]
	for _, name := range sortedKeys(spec.Hard) {
		f.Reject("", ok && isQuotaResource(name) && !fits.Has(name), what, "unsupported scope applied to resource")
	}
}

func validateScopes(f verify.Field, spec *corev1.ResourceQuotaSpec) {
	for _, scope := range spec.Scopes {
		f.Reject("", quotaScopes[scope] == nil, spec.Scopes, "unsupported scope")
		fitsScope(f, scope, spec, spec.Scopes)
	}
	conflictingScopes(f, spec.Scopes, spec.Scopes)
}

func conflictingScopes(f verify.Field, scopes, shown []corev1.ResourceQuotaScope) {
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		f.Reject("", slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]), shown, "conflicting scopes")
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateScopedResourceSelectorRequirement.
func validateScopeRequirement(
	f verify.Field, r corev1.ScopedResourceSelectorRequirement, spec *corev1.ResourceQuotaSpec,
) {
	f.Reject("scopeName", quotaScopes[r.ScopeName] == nil, r.ScopeName, "unsupported scope")
	fitsScope(f, r.ScopeName, spec, shown(spec.ScopeSelector))
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		f.Reject("operator", r.Operator != corev1.ScopeSelectorOpExists, r.Operator,
			"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "+
				"ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "+
				"ResourceQuotaScopeCrossNamespacePodAffinity")
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		f.Require("values", len(r.Values) > 0,
			"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		f.Reject("values", len(r.Values) > 0, r.Values,
			"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
	default:
		f.Reject("operator", true, r.Operator, "not a valid selector operator")
	}
}

// quotaWarnings returns warnings about a new quota.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/resourcequota/strategy.go WarningsOnCreate.
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
	return warnings
}

func amount(q resource.Quantity) string { return q.String() }

func quotaRow(q *corev1.ResourceQuota) []cell {
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
		column("Request", "string", "Request represents a minimum amount of cpu/memory that a container may consume.",
			strings.Join(requests, ", ")),
		column("Limit", "string", "Limits control the maximum amount of cpu/memory that a container may use "+
			"independent of contention on the node.", strings.Join(limits, ", ")),
	}
}
