package builtin

import (
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Evaluate lets cel validate the expressions in objects of the given types. If cel is nil, the server does not evaluate
// expressions. Then it refuses new webhooks with conditions, since to ignore them would be to call webhooks for what
// they do not want, and warns of policies, which have no effect.
func Evaluate(all []*resource.Definition, cel expressions.Evaluator) {
	for _, d := range all {
		if d.GroupVersion != registrationv1.SchemeGroupVersion {
			continue
		}
		switch {
		case d.Kind == "ValidatingAdmissionPolicy" && cel == nil:
			d.Warnings = func(_, _ runtime.Object) []string {
				return []string{"this server does not evaluate CEL: the policy is not enforced"}
			}
		case d.Kind == "ValidatingAdmissionPolicy":
			alsoValidate(d, func(obj, old runtime.Object) field.ErrorList {
				before, _ := old.(*registrationv1.ValidatingAdmissionPolicy)
				return cel.ValidatePolicy(obj.(*registrationv1.ValidatingAdmissionPolicy), before)
			})
		default:
			alsoValidate(d, func(obj, old runtime.Object) field.ErrorList { return matchConditions(cel, obj, old) })
		}
	}
}

// alsoValidate adds to what d checks in a new object and in a changed one. old is nil for a new object.
func alsoValidate(d *resource.Definition, check func(obj, old runtime.Object) field.ErrorList) {
	create, update := d.ValidateCreate, d.ValidateUpdate
	d.ValidateCreate = func(obj runtime.Object) (errs field.ErrorList) {
		if create != nil {
			errs = create(obj)
		}
		return append(errs, check(obj, nil)...)
	}
	d.ValidateUpdate = func(obj, old runtime.Object) (errs field.ErrorList) {
		if update != nil {
			errs = update(obj, old)
		}
		return append(errs, check(obj, old)...)
	}
}

// matchConditions validates the expressions of webhooks.
func matchConditions(cel expressions.Evaluator, obj, old runtime.Object) (errs field.ErrorList) {
	var before []registrationv1.MatchCondition
	for _, conditions := range webhookConditions(old) {
		before = append(before, conditions...)
	}
	for i, conditions := range webhookConditions(obj) {
		path := field.NewPath("webhooks").Index(i).Child("matchConditions")
		if cel == nil && len(conditions) > 0 {
			errs = append(errs, field.Forbidden(path, "this server does not evaluate CEL: leave the conditions out"))
		}
		if cel == nil {
			continue
		}
		errs = append(errs, cel.ValidateConditions(path, conditions, before)...)
	}
	return errs
}

// webhookConditions returns the match conditions of each webhook of a configuration.
func webhookConditions(obj runtime.Object) (all [][]registrationv1.MatchCondition) {
	switch c := obj.(type) {
	case *registrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			all = append(all, c.Webhooks[i].MatchConditions)
		}
	case *registrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			all = append(all, c.Webhooks[i].MatchConditions)
		}
	}
	return all
}
