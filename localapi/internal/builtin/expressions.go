package builtin

import (
	"regexp"
	"slices"
	"strconv"

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
		switch kind := d.Kind; {
		case cel == nil && (kind == "ValidatingAdmissionPolicy" || kind == "MutatingAdmissionPolicy"):
			d.Warnings = func(_, _ runtime.Object) []string {
				return []string{"this server does not evaluate CEL: the policy is not enforced"}
			}
		case kind == "ValidatingAdmissionPolicy":
			alsoValidate(d, expressionsOf(cel.ValidateValidating))
		case kind == "MutatingAdmissionPolicy":
			alsoValidate(d, expressionsOf(cel.ValidateMutating))
		default:
			alsoValidate(d, func(obj, old runtime.Object) field.ErrorList { return matchConditions(cel, obj, old) })
		}
	}
}

// expressionsOf lets validate be written for the Go type of a policy. old is nil for a new one.
func expressionsOf[T runtime.Object](validate func(obj, old T) field.ErrorList) func(obj,
	old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList {
		before, _ := old.(T)
		return validate(obj.(T), before)
	}
}

// alsoValidate adds to what d checks in a new object and in a changed one. old is nil for a new object.
func alsoValidate(d *resource.Definition, check func(obj, old runtime.Object) field.ErrorList) {
	validate, create := d.Validate, d.ValidateCreate
	d.Validate = nil
	d.ValidateCreate = func(obj runtime.Object) field.ErrorList {
		return append(inOrder(append(validate(obj), check(obj, nil)...)), create(obj)...)
	}
	d.ValidateUpdate = func(obj, old runtime.Object) field.ErrorList {
		return inOrder(append(validate(obj), check(obj, old)...))
	}
}

// place finds in the path of a field where a real server validates it. sequence are the fields from the first one with
// expressions on.
var (
	place    = regexp.MustCompile(`^(?:spec\.|webhooks\[(\d+)\]\.)(\w+)(?:\[(\d+)\])?(?:\.(\w+))?`)
	sequence = []string{
		"matchConditions", "variables", "validations", "mutations", "auditAnnotations", "reinvocationPolicy",
		"admissionReviewVersions",
	}
)

// inOrder sorts errors into the order of a real server, which compiles an expression when it validates its field.
func inOrder(errs field.ErrorList) field.ErrorList {
	key := func(e *field.Error) []int {
		m := place.FindStringSubmatch(e.Field)
		if m == nil {
			return nil
		}
		webhook, _ := strconv.Atoi(m[1])
		element, _ := strconv.Atoi(m[3])
		leaf := 0
		if m[2] == "matchConditions" && m[4] == "name" {
			leaf = 1
		}
		return []int{webhook, slices.Index(sequence, m[2]), element, leaf}
	}
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return slices.Compare(key(a), key(b)) })
	return errs
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
