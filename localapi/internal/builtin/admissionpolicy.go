package builtin

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// The rules of this file are those of k8s.io/kubernetes v1.37.1 pkg/apis/admissionregistration/validation/validation.go
// for new objects, but for those about expressions, which need CEL.

func validatingAdmissionPolicy() *resource.Definition {
	type T = registrationv1.ValidatingAdmissionPolicy
	d := typed[T, registrationv1.ValidatingAdmissionPolicyList](registrationv1.SchemeGroupVersion,
		"validatingadmissionpolicies")
	d.Categories = []string{"api-extensions"}
	d.NeedsResourceVersion = true
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(func(p *T) {
		setDefaultPtr(&p.Spec.FailurePolicy, registrationv1.Fail)
		defaultMatchResources(p.Spec.MatchConstraints)
	})
	d.ValidateCreate = notStatic
	d.Validate = check(validateAdmissionPolicy)
	d.ValidateStatusUpdate = compare(func(p, _ *T) field.ErrorList { return validatePolicyStatus(&p.Status) })
	printed(d, func(p *T, now time.Time) []cell {
		kind := "<unset>"
		if k := p.Spec.ParamKind; k != nil {
			kind = k.APIVersion + "/" + k.Kind
		}
		return []cell{
			nameColumn(p.Name),
			column("Validations", "integer",
				"Validations indicates the number of validation rules defined in this configuration",
				int64(len(p.Spec.Validations))),
			column("ParamKind", "string",
				"ParamKind specifies the kind of resources used to parameterize this policy", kind),
			ageColumn(p.CreationTimestamp, now),
		}
	})
	return d
}

func validatingAdmissionPolicyBinding() *resource.Definition {
	type T = registrationv1.ValidatingAdmissionPolicyBinding
	d := typed[T, registrationv1.ValidatingAdmissionPolicyBindingList](registrationv1.SchemeGroupVersion,
		"validatingadmissionpolicybindings")
	d.Categories = []string{"api-extensions"}
	d.NeedsResourceVersion = true
	withGeneration(d, "Spec")
	d.Default = mutate(func(b *T) { defaultMatchResources(b.Spec.MatchResources) })
	d.ValidateCreate = notStatic
	d.Validate = check(validatePolicyBinding)
	printed(d, func(b *T, now time.Time) []cell {
		return []cell{
			nameColumn(b.Name),
			column("PolicyName", "string",
				"PolicyName indicates the policy definition which the policy binding binded to", b.Spec.PolicyName),
			column("ParamRef", "string",
				"ParamRef indicates the param resource which sets the configuration param",
				shownParam(b.Spec.ParamRef)),
			ageColumn(b.CreationTimestamp, now),
		}
	})
	return d
}

// shownParam returns what a binding's parameters are, as kubectl prints them.
func shownParam(r *registrationv1.ParamRef) string {
	switch {
	case r == nil || r.Name == "" && r.Selector == nil:
		return "<unset>"
	case r.Name == "":
		return r.Selector.String()
	case r.Namespace == "":
		return "*/" + r.Name
	}
	return r.Namespace + "/" + r.Name
}

func defaultMatchResources(m *registrationv1.MatchResources) {
	if m == nil {
		return
	}
	setDefaultPtr(&m.MatchPolicy, registrationv1.Equivalent)
	setDefaultPtr(&m.NamespaceSelector, metav1.LabelSelector{})
	setDefaultPtr(&m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]registrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			setDefaultPtr(&rules[i].Scope, registrationv1.AllScopes)
		}
	}
}

func validateAdmissionPolicy(p *registrationv1.ValidatingAdmissionPolicy) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	errs := optional(path.Child("failurePolicy"), spec.FailurePolicy, registrationv1.Fail, registrationv1.Ignore)
	if spec.ParamKind != nil {
		errs = append(errs, validateParamKind(spec.ParamKind, path.Child("paramKind"))...)
	}
	constraints := path.Child("matchConstraints")
	if spec.MatchConstraints == nil {
		errs = append(errs, field.Required(constraints, ""))
	} else {
		errs = append(errs, validateMatchResources(spec.MatchConstraints, constraints)...)
		if len(spec.MatchConstraints.ResourceRules) == 0 {
			errs = append(errs, field.Required(constraints.Child("resourceRules"), ""))
		}
	}
	errs = append(errs, validateConditions(spec.MatchConditions, path.Child("matchConditions"))...)
	for i := range spec.Variables {
		errs = append(errs, validateVariable(&spec.Variables[i], path.Child("variables").Index(i))...)
	}
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const problem = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(path.Child("validations"), problem),
			field.Required(path.Child("auditAnnotations"), problem))
	}
	for i := range spec.Validations {
		errs = append(errs, validateValidation(&spec.Validations[i], path.Child("validations").Index(i))...)
	}
	return append(errs, validateAuditAnnotations(p.Name, spec.AuditAnnotations, path.Child("auditAnnotations"))...)
}

func validateParamKind(k *registrationv1.ParamKind, path *field.Path) (errs field.ErrorList) {
	at := path.Child("apiVersion")
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	switch {
	case k.APIVersion == "":
		errs = append(errs, field.Required(at, ""))
	case err != nil:
		errs = append(errs, field.Invalid(at, k.APIVersion, err.Error()))
	default:
		if problems := validation.IsDNS1123Subdomain(gv.Group); gv.Group != "" && len(problems) > 0 {
			errs = append(errs, field.Invalid(at, gv.Group, strings.Join(problems, ",")))
		}
		if gv.Version == "" {
			errs = append(errs, field.Invalid(at, k.APIVersion, "version must be specified"))
		} else if problems := validation.IsDNS1035Label(gv.Version); len(problems) > 0 {
			errs = append(errs, field.Invalid(at, gv.Version, strings.Join(problems, ",")))
		}
	}
	if k.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), ""))
	} else if problems := validation.IsDNS1035Label(strings.ToLower(k.Kind)); len(problems) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), k.Kind,
			"may have mixed case, but should otherwise match: "+strings.Join(problems, ",")))
	}
	return errs
}

func validateMatchResources(m *registrationv1.MatchResources, path *field.Path) field.ErrorList {
	errs := optional(path.Child("matchPolicy"), m.MatchPolicy, registrationv1.Equivalent, registrationv1.Exact)
	errs = append(errs, labelSelector(m.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, labelSelector(m.ObjectSelector, path.Child("objectSelector"))...)
	for i := range m.ResourceRules {
		errs = append(errs, validateNamedRule(&m.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		at := path.Child("excludeResourceRules").Index(i)
		errs = append(errs, validateNamedRule(&m.ExcludeResourceRules[i], at)...)
	}
	return errs
}

func validateNamedRule(r *registrationv1.NamedRuleWithOperations, path *field.Path) (errs field.ErrorList) {
	names := sets.New[string]()
	for i, name := range r.ResourceNames {
		at := path.Child("resourceNames").Index(i)
		errs = append(errs, invalid(at, name, content.IsPathSegmentName(name))...)
		errs = append(errs, distinct(names, name, at)...)
	}
	return append(errs, validateRule(&r.RuleWithOperations, path)...)
}

// identifier is a name in CEL, if it is no keyword.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// reserved are the words of CEL that cannot be names.
var reserved = sets.New("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
	"if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while")

func validateVariable(v *registrationv1.Variable, path *field.Path) (errs field.ErrorList) {
	if strings.TrimSpace(v.Name) == "" {
		errs = append(errs, field.Required(path.Child("name"), "name is not specified"))
	} else if !identifier.MatchString(v.Name) || reserved.Has(v.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), v.Name, "must be a valid CEL identifier"))
	}
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	}
	return errs
}

func validateValidation(v *registrationv1.Validation, path *field.Path) (errs field.ErrorList) {
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	}
	blank := func(s string) bool { return s != "" && strings.TrimSpace(s) == "" }
	if blank(v.MessageExpression) {
		errs = append(errs, field.Invalid(path.Child("messageExpression"), v.MessageExpression,
			"must be non-empty if specified"))
	}
	if blank(v.Message) {
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must be non-empty if specified"))
	} else if strings.ContainsAny(strings.TrimSpace(v.Message), "\r\n") {
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must not contain line breaks"))
	}
	return append(errs, optional(path.Child("reason"), v.Reason, metav1.StatusReasonForbidden,
		metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
}

func validateAuditAnnotations(name string, all []registrationv1.AuditAnnotation,
	path *field.Path,
) (errs field.ErrorList) {
	const most, longest = 20, 5 << 10
	if len(all) > most {
		errs = append(errs, field.Invalid(path, shown(all),
			fmt.Sprintf("must not have more than %d auditAnnotations", most)))
	}
	keys := sets.New[string]()
	for i, a := range all {
		key, value := path.Index(i).Child("key"), path.Index(i).Child("valueExpression")
		if name == "" {
			errs = append(errs, field.Invalid(key, a.Key, "requires metadata.name be non-empty"))
		} else {
			errs = append(errs, qualifiedName(name+"/"+a.Key, key)...)
		}
		if text := strings.TrimSpace(a.ValueExpression); text == "" {
			errs = append(errs, field.Required(value, "valueExpression is not specified"))
		} else if len(text) > longest {
			errs = append(errs, field.Required(value, fmt.Sprintf("must not exceed %d bytes in length", longest)))
		}
		if keys.Has(a.Key) {
			errs = append(errs, field.Duplicate(key, a.Key))
		}
		keys.Insert(a.Key)
	}
	return errs
}

func validatePolicyStatus(s *registrationv1.ValidatingAdmissionPolicyStatus) (errs field.ErrorList) {
	path := field.NewPath("status")
	if s.TypeChecking != nil {
		for i, w := range s.TypeChecking.ExpressionWarnings {
			at := path.Child("typeChecking", "expressionWarnings").Index(i)
			if w.Warning == "" {
				errs = append(errs, field.Required(at.Child("warning"), ""))
			}
			ref := strings.TrimSpace(w.FieldRef)
			if ref == "" {
				errs = append(errs, field.Required(at.Child("fieldRef"), ""))
			} else if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
				errs = append(errs, field.Invalid(at.Child("fieldRef"), ref, fmt.Sprintf("invalid JSONPath: %v", err)))
			}
		}
	}
	return append(errs, metavalidation.ValidateConditions(s.Conditions, path.Child("conditions"))...)
}

func validatePolicyBinding(b *registrationv1.ValidatingAdmissionPolicyBinding) (errs field.ErrorList) {
	spec, path := &b.Spec, field.NewPath("spec")
	if name := path.Child("policyName"); spec.PolicyName == "" {
		errs = append(errs, field.Required(name, ""))
	} else {
		errs = append(errs, invalid(name, spec.PolicyName, apivalidation.NameIsDNSSubdomain(spec.PolicyName, false))...)
	}
	if spec.ParamRef != nil {
		errs = append(errs, validateParamRef(spec.ParamRef, path.Child("paramRef"))...)
	}
	if spec.MatchResources != nil {
		errs = append(errs, validateMatchResources(spec.MatchResources, path.Child("matchResources"))...)
	}
	return append(errs, validateActions(spec.ValidationActions, path.Child("validationActions"))...)
}

func validateParamRef(r *registrationv1.ParamRef, path *field.Path) (errs field.ErrorList) {
	const exclusive = "name and selector are mutually exclusive"
	if r.Name != "" {
		errs = append(errs, invalid(path.Child("name"), r.Name, content.IsPathSegmentName(r.Name))...)
		if r.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child("name"), exclusive))
		}
	}
	if r.Selector != nil {
		errs = append(errs, labelSelector(r.Selector, path.Child("selector"))...)
		if r.Name != "" {
			errs = append(errs, field.Forbidden(path.Child("selector"), exclusive))
		}
	}
	if r.Name == "" && r.Selector == nil {
		errs = append(errs, field.Required(path, "one of name or selector must be specified"))
	}
	at := path.Child("parameterNotFoundAction")
	if r.ParameterNotFoundAction == nil || *r.ParameterNotFoundAction == "" {
		return append(errs, field.Required(at, ""))
	}
	return append(errs, supported(at, *r.ParameterNotFoundAction, registrationv1.DenyAction,
		registrationv1.AllowAction)...)
}

func validateActions(actions []registrationv1.ValidationAction, path *field.Path) (errs field.ErrorList) {
	seen := sets.New[registrationv1.ValidationAction]()
	for i, a := range actions {
		errs = append(errs, supported(path.Index(i), a, registrationv1.Audit, registrationv1.Deny,
			registrationv1.Warn)...)
		if seen.Has(a) {
			errs = append(errs, field.Duplicate(path.Index(i), a))
		}
		seen.Insert(a)
	}
	if seen.HasAll(registrationv1.Deny, registrationv1.Warn) {
		errs = append(errs, field.Invalid(path, actions, "must not contain both Deny and Warn (repeating the same "+
			"validation failure information in the API response and headers serves no purpose)"))
	}
	if len(actions) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	return errs
}
