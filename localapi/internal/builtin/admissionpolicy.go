package builtin

import (
	"fmt"
	"regexp"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// The rules of this file are those of k8s.io/kubernetes v1.37.2 pkg/apis/admissionregistration/validation/validation.go
// for new objects, but for those about expressions, which need CEL.

func validatingAdmissionPolicy() *resource.Definition {
	type T = registrationv1.ValidatingAdmissionPolicy
	d := typed[T, registrationv1.ValidatingAdmissionPolicyList](registrationv1.SchemeGroupVersion,
		"validatingadmissionpolicies")
	withStatus(d)
	admissionPolicyRules(d, expressions.AsMutating, func(p *T) cell {
		return column("Validations", "integer",
			"Validations indicates the number of validation rules defined in this configuration",
			int64(len(p.Spec.Validations)))
	})
	d.Default = mutate(func(p *T) {
		setDefaultPtr(&p.Spec.FailurePolicy, registrationv1.Fail)
		defaultMatchResources(p.Spec.MatchConstraints)
	})
	d.Validate = rules(validateValidatingPolicy)
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, p, _ *T) {
		validatePolicyStatus(f.Child("status"), &p.Status)
	})
	return d
}

// admissionPolicyRules adds what both kinds of policies have in common. count is the second column.
func admissionPolicyRules[T any, P pointerTo[T]](d *resource.Definition,
	common func(P) *registrationv1.MutatingAdmissionPolicy, count func(P) cell,
) {
	d.Categories = []string{"api-extensions"}
	d.NeedsResourceVersion = true
	withGeneration(d, "Spec")
	d.ValidateCreate = notStatic
	listed(d, func(p P) []cell {
		kind := "<unset>"
		if k := common(p).Spec.ParamKind; k != nil {
			kind = k.APIVersion + "/" + k.Kind
		}
		return []cell{count(p), column("ParamKind", "string",
			"ParamKind specifies the kind of resources used to parameterize this policy", kind)}
	})
}

func validatingAdmissionPolicyBinding() *resource.Definition {
	type T = registrationv1.ValidatingAdmissionPolicyBinding
	d := typed[T, registrationv1.ValidatingAdmissionPolicyBindingList](registrationv1.SchemeGroupVersion,
		"validatingadmissionpolicybindings")
	admissionBindingRules(d, expressions.AsMutatingBinding, func(f verify.Field, b *T) {
		validateActions(f, b.Spec.ValidationActions)
	})
	return d
}

// admissionBindingRules adds what the bindings of both kinds have in common. rest validates the rest of a spec.
func admissionBindingRules[T any, P pointerTo[T]](d *resource.Definition,
	common func(P) *registrationv1.MutatingAdmissionPolicyBinding, rest func(verify.Field, P),
) {
	d.Categories = []string{"api-extensions"}
	d.NeedsResourceVersion = true
	withGeneration(d, "Spec")
	d.Default = mutate(func(b P) { defaultMatchResources(common(b).Spec.MatchResources) })
	d.ValidateCreate = notStatic
	d.Validate = rules(func(f verify.Field, b P) {
		validatePolicyBinding(f.Child("spec"), &common(b).Spec)
		rest(f.Child("spec"), b)
	})
	listed(d, func(b P) []cell {
		spec := &common(b).Spec
		return []cell{
			column("PolicyName", "string",
				"PolicyName indicates the policy definition which the policy binding binded to", spec.PolicyName),
			column("ParamRef", "string",
				"ParamRef indicates the param resource which sets the configuration param", shownParam(spec.ParamRef)),
		}
	})
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

// validateAdmissionPolicy validates what both kinds of policies have in common.
func validateAdmissionPolicy(f verify.Field, spec *registrationv1.MutatingAdmissionPolicySpec) {
	verify.SupportedPointer(f, "failurePolicy", spec.FailurePolicy, registrationv1.Fail, registrationv1.Ignore)
	if spec.ParamKind != nil {
		validateParamKind(f.Child("paramKind"), spec.ParamKind)
	}
	f.Require("matchConstraints", spec.MatchConstraints != nil, "")
	if m := spec.MatchConstraints; m != nil {
		validateMatchResources(f.Child("matchConstraints"), m)
		f.Require("matchConstraints.resourceRules", len(m.ResourceRules) > 0, "")
	}
	validateConditions(f, spec.MatchConditions)
	verify.Each(f, "variables", spec.Variables, validateVariable)
}

func validateValidatingPolicy(f verify.Field, p *registrationv1.ValidatingAdmissionPolicy) {
	f, spec := f.Child("spec"), &p.Spec
	validateAdmissionPolicy(f, &expressions.AsMutating(p).Spec)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const problem = "validations or auditAnnotations must contain at least one item"
		f.Require("validations", false, problem)
		f.Require("auditAnnotations", false, problem)
		return
	}
	verify.Each(f, "validations", spec.Validations, validateValidation)
	validateAuditAnnotations(f, p.Name, spec.AuditAnnotations)
}

func validateParamKind(f verify.Field, k *registrationv1.ParamKind) {
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	f.Require("apiVersion", k.APIVersion != "", "")
	if err != nil {
		f.Reject("apiVersion", true, k.APIVersion, err.Error())
	} else if k.APIVersion != "" {
		f.MatchIfSet("apiVersion", gv.Group, verify.Joined(validation.IsDNS1123Subdomain))
		f.Reject("apiVersion", gv.Version == "", k.APIVersion, "version must be specified")
		f.MatchIfSet("apiVersion", gv.Version, verify.Joined(validation.IsDNS1035Label))
	}
	f.RequireMatch("kind", k.Kind, verify.Kind)
}

func validateMatchResources(f verify.Field, m *registrationv1.MatchResources) {
	verify.SupportedPointer(f, "matchPolicy", m.MatchPolicy, registrationv1.Equivalent, registrationv1.Exact)
	f.LabelSelector("namespaceSelector", m.NamespaceSelector)
	f.LabelSelector("objectSelector", m.ObjectSelector)
	verify.Each(f, "resourceRules", m.ResourceRules, validateNamedRule)
	verify.Each(f, "excludeResourceRules", m.ExcludeResourceRules, validateNamedRule)
}

func validateNamedRule(f verify.Field, r *registrationv1.NamedRuleWithOperations) {
	names := sets.New[string]()
	verify.Each(f, "resourceNames", r.ResourceNames, func(f verify.Field, name *string) {
		f.Match("", *name, content.IsPathSegmentName)
		distinct(f, "", names, *name)
	})
	validateRule(f, &r.RuleWithOperations)
}

// identifier is a name in CEL, if it is no keyword.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// reserved are the words of CEL that cannot be names.
var reserved = sets.New("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
	"if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while")

func validateVariable(f verify.Field, v *registrationv1.Variable) {
	named := strings.TrimSpace(v.Name) != ""
	f.Require("name", named, "name is not specified")
	f.Reject("name", named && (!identifier.MatchString(v.Name) || reserved.Has(v.Name)), v.Name,
		"must be a valid CEL identifier")
	f.Require("expression", strings.TrimSpace(v.Expression) != "", "expression is not specified")
}

func validateValidation(f verify.Field, v *registrationv1.Validation) {
	f.Require("expression", strings.TrimSpace(v.Expression) != "", "expression is not specified")
	blank := func(s string) bool { return s != "" && strings.TrimSpace(s) == "" }
	f.Reject("messageExpression", blank(v.MessageExpression), v.MessageExpression, "must be non-empty if specified")
	f.Reject("message", blank(v.Message), v.Message, "must be non-empty if specified")
	f.Reject("message", strings.ContainsAny(strings.TrimSpace(v.Message), "\r\n"), v.Message,
		"must not contain line breaks")
	verify.SupportedPointer(f, "reason", v.Reason, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
		metav1.StatusReasonRequestEntityTooLarge)
}

func validateAuditAnnotations(f verify.Field, policy string, all []registrationv1.AuditAnnotation) {
	const most, longest = 20, 5 << 10
	if len(all) > most {
		f.Rejectf("auditAnnotations", true, shown(all), "must not have more than %d auditAnnotations", most)
	}
	keys := sets.New[string]()
	verify.Each(f, "auditAnnotations", all, func(f verify.Field, a *registrationv1.AuditAnnotation) {
		if policy == "" {
			f.Reject("key", true, a.Key, "requires metadata.name be non-empty")
		} else {
			f.Match("key", policy+"/"+a.Key, validation.IsQualifiedName)
		}
		text := strings.TrimSpace(a.ValueExpression)
		f.Require("valueExpression", text != "", "valueExpression is not specified")
		f.Require("valueExpression", len(text) <= longest, fmt.Sprintf("must not exceed %d bytes in length", longest))
		verify.Unique(f, "key", keys, a.Key)
	})
}

func validatePolicyStatus(f verify.Field, s *registrationv1.ValidatingAdmissionPolicyStatus) {
	if s.TypeChecking != nil {
		warnings := s.TypeChecking.ExpressionWarnings
		verify.Each(f, "typeChecking.expressionWarnings", warnings, func(f verify.Field,
			w *registrationv1.ExpressionWarning,
		) {
			f.Require("warning", w.Warning != "", "")
			ref := strings.TrimSpace(w.FieldRef)
			f.Require("fieldRef", ref != "", "")
			err := jsonpath.New("spec").Parse("{" + ref + "}")
			f.Rejectf("fieldRef", ref != "" && err != nil, ref, "invalid JSONPath: %v", err)
		})
	}
	f.Conditions("conditions", s.Conditions)
}

// validatePolicyBinding validates what the bindings of both kinds have in common.
func validatePolicyBinding(f verify.Field, spec *registrationv1.MutatingAdmissionPolicyBindingSpec) {
	f.RequireMatch("policyName", spec.PolicyName, validation.IsDNS1123Subdomain)
	if spec.ParamRef != nil {
		validateParamRef(f.Child("paramRef"), spec.ParamRef)
	}
	if spec.MatchResources != nil {
		validateMatchResources(f.Child("matchResources"), spec.MatchResources)
	}
}

func validateParamRef(f verify.Field, r *registrationv1.ParamRef) {
	const exclusive = "name and selector are mutually exclusive"
	f.MatchIfSet("name", r.Name, content.IsPathSegmentName)
	f.Forbid("name", r.Name != "" && r.Selector != nil, exclusive)
	f.LabelSelector("selector", r.Selector)
	f.Forbid("selector", r.Name != "" && r.Selector != nil, exclusive)
	f.Require("", r.Name != "" || r.Selector != nil, "one of name or selector must be specified")
	verify.OneOf(f, "parameterNotFoundAction", ptr.Deref(r.ParameterNotFoundAction, ""), registrationv1.DenyAction,
		registrationv1.AllowAction)
}

func validateActions(f verify.Field, actions []registrationv1.ValidationAction) {
	seen := sets.New[registrationv1.ValidationAction]()
	verify.Each(f, "validationActions", actions, func(f verify.Field, a *registrationv1.ValidationAction) {
		verify.Supported(f, "", *a, registrationv1.Audit, registrationv1.Deny, registrationv1.Warn)
		verify.Unique(f, "", seen, *a)
	})
	f.Reject("validationActions", seen.HasAll(registrationv1.Deny, registrationv1.Warn), actions,
		"must not contain both Deny and Warn (repeating the same validation failure information in the API response "+
			"and headers serves no purpose)")
	f.Require("validationActions", len(actions) > 0, "")
}
