package builtin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/webhookclient"
)

// The two configurations have the same rules, written for mutating webhooks. A validating webhook has all their fields
// but one.

func mutatingWebhookConfiguration() *resource.Definition {
	type T = registrationv1.MutatingWebhookConfiguration
	d := typed[T, registrationv1.MutatingWebhookConfigurationList](registrationv1.SchemeGroupVersion,
		"mutatingwebhookconfigurations")
	d.Default = mutate(func(c *T) {
		for i := range c.Webhooks {
			defaultWebhook(&c.Webhooks[i])
			setDefaultPtr(&c.Webhooks[i].ReinvocationPolicy, registrationv1.NeverReinvocationPolicy)
		}
	})
	webhookRules(d, func(obj runtime.Object) []registrationv1.MutatingWebhook { return obj.(*T).Webhooks })
	printed(d, func(c *T, now time.Time) []cell { return webhookColumns(&c.ObjectMeta, len(c.Webhooks), now) })
	return d
}

func validatingWebhookConfiguration() *resource.Definition {
	type T = registrationv1.ValidatingWebhookConfiguration
	d := typed[T, registrationv1.ValidatingWebhookConfigurationList](registrationv1.SchemeGroupVersion,
		"validatingwebhookconfigurations")
	d.Default = mutate(func(c *T) {
		for i := range c.Webhooks {
			w := AsMutating(&c.Webhooks[i])
			defaultWebhook(&w)
			c.Webhooks[i] = registrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
				MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector,
				ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
				AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
			}
		}
	})
	webhookRules(d, func(obj runtime.Object) (all []registrationv1.MutatingWebhook) {
		for i := range obj.(*T).Webhooks {
			all = append(all, AsMutating(&obj.(*T).Webhooks[i]))
		}
		return all
	})
	printed(d, func(c *T, now time.Time) []cell { return webhookColumns(&c.ObjectMeta, len(c.Webhooks), now) })
	return d
}

// AsMutating returns a validating webhook in the form of a mutating one.
func AsMutating(w *registrationv1.ValidatingWebhook) registrationv1.MutatingWebhook {
	return registrationv1.MutatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
		MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
	}
}

// webhookRules adds the rules of a configuration.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go.
func webhookRules(d *resource.Definition, webhooks func(runtime.Object) []registrationv1.MutatingWebhook) {
	d.Categories = []string{"api-extensions"}
	d.NeedsResourceVersion = true
	withGeneration(d, "Webhooks")
	d.ValidateCreate = notStatic
	d.Validate = func(obj runtime.Object) field.ErrorList { return validateWebhooks(webhooks(obj)) }
	d.Warnings = func(obj, _ runtime.Object) (all []string) {
		for i, w := range webhooks(obj) {
			all = append(all, ruleWarnings(w.Rules, field.NewPath("webhooks").Index(i).Child("rules"))...)
		}
		return all
	}
}

func webhookColumns(m *metav1.ObjectMeta, webhooks int, now time.Time) []cell {
	return []cell{
		nameColumn(m.Name),
		column("Webhooks", "integer", "Webhooks indicates the number of webhooks registered in this configuration",
			int64(webhooks)),
		ageColumn(m.CreationTimestamp, now),
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/admissionregistration/v1/defaults.go.
func defaultWebhook(w *registrationv1.MutatingWebhook) {
	setDefaultPtr(&w.FailurePolicy, registrationv1.Fail)
	setDefaultPtr(&w.MatchPolicy, registrationv1.Equivalent)
	setDefaultPtr(&w.NamespaceSelector, metav1.LabelSelector{})
	setDefaultPtr(&w.ObjectSelector, metav1.LabelSelector{})
	setDefaultPtr(&w.TimeoutSeconds, 10)
	if s := w.ClientConfig.Service; s != nil {
		setDefaultPtr(&s.Port, 443)
	}
	for i := range w.Rules {
		setDefaultPtr(&w.Rules[i].Scope, registrationv1.AllScopes)
	}
}

// notStatic reserves names for configurations in files, which a real server reads at start-up.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/admissionregistration/validation/static_suffix.go.
func notStatic(obj runtime.Object) field.ErrorList {
	const suffix = ".static.k8s.io"
	name := obj.(metav1.Object).GetName()
	if !strings.HasSuffix(name, suffix) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf("names ending with %q "+
		"are reserved for static manifest-based configurations and cannot be managed via the API", suffix))}
}

// unseen are the resources that admission never sees.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/kubeapiserver/admission/exclusion/resources.go.
var unseen = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// ruleWarnings names the resources in rules that admission never sees.
func ruleWarnings(rules []registrationv1.RuleWithOperations, path *field.Path) (all []string) {
	for i, r := range rules {
		if slices.Contains(r.APIGroups, "*") || slices.Contains(r.Resources, "*") {
			continue
		}
		for _, group := range r.APIGroups {
			for _, name := range r.Resources {
				gr := schema.GroupResource{Group: group, Resource: name}
				warning := fmt.Sprintf("%s: %s is excluded from admission webhooks; this rule will have no effect",
					path.Index(i), gr)
				if slices.Contains(unseen, gr) && !slices.Contains(all, warning) {
					all = append(all, warning)
				}
			}
		}
	}
	return all
}

// The rules of this file are those of k8s.io/kubernetes v1.37.1 pkg/apis/admissionregistration/validation/validation.go
// for new objects. Leniency towards objects that older servers stored is left out.

func validateWebhooks(webhooks []registrationv1.MutatingWebhook) (errs field.ErrorList) {
	names := sets.New[string]()
	for i := range webhooks {
		w, path := &webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateWebhook(w, path)...)
		errs = append(errs, webhookclient.ValidateVersions(w.AdmissionReviewVersions, "must specify one of v1, v1beta1",
			path.Child("admissionReviewVersions"))...)
		errs = append(errs, distinct(names, w.Name, path.Child("name"))...)
	}
	return errs
}

// distinct adds a name to those before it, unless it is empty.
func distinct(names sets.Set[string], name string, path *field.Path) field.ErrorList {
	if names.Has(name) {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	if name != "" {
		names.Insert(name)
	}
	return nil
}

func validateWebhook(w *registrationv1.MutatingWebhook, path *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(path.Child("name"), w.Name)
	for i := range w.Rules {
		errs = append(errs, validateRule(&w.Rules[i], path.Child("rules").Index(i))...)
	}
	errs = append(errs, optional(path.Child("failurePolicy"), w.FailurePolicy, registrationv1.Fail,
		registrationv1.Ignore)...)
	errs = append(errs, optional(path.Child("matchPolicy"), w.MatchPolicy, registrationv1.Equivalent,
		registrationv1.Exact)...)
	if w.SideEffects == nil {
		errs = append(errs, field.Required(path.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	}
	errs = append(errs, optional(path.Child("sideEffects"), w.SideEffects, registrationv1.SideEffectClassNone,
		registrationv1.SideEffectClassNoneOnDryRun)...)
	if s := w.TimeoutSeconds; s != nil && (*s > 30 || *s < 1) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *s,
			"the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, labelSelector(w.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, labelSelector(w.ObjectSelector, path.Child("objectSelector"))...)
	errs = append(errs, optional(path.Child("reinvocationPolicy"), w.ReinvocationPolicy,
		registrationv1.IfNeededReinvocationPolicy, registrationv1.NeverReinvocationPolicy)...)
	errs = append(errs, validateClientConfig(&w.ClientConfig, path.Child("clientConfig"))...)
	return append(errs, validateConditions(w.MatchConditions, path.Child("matchConditions"))...)
}

// optional requires one of some values, if there is a value.
func optional[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return supported(path, *value, allowed...)
}

func validateClientConfig(c *registrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	var service *webhookclient.Service
	if s := c.Service; s != nil {
		service = &webhookclient.Service{
			Namespace: s.Namespace, Name: s.Name, Port: ptr.Deref(s.Port, 0), Path: ptr.Deref(s.Path, ""),
		}
	}
	return webhookclient.ValidateTarget(c.URL, service, path)
}

// validateConditions validates match conditions, but not their expressions.
func validateConditions(conditions []registrationv1.MatchCondition, path *field.Path) (errs field.ErrorList) {
	const most = 64
	if len(conditions) > most {
		errs = append(errs, field.TooMany(path, len(conditions), most))
	}
	names := sets.New[string]()
	for i, c := range conditions {
		at := path.Index(i)
		if strings.TrimSpace(c.Expression) == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		}
		errs = append(errs, required(c.Name, at.Child("name"), validation.IsQualifiedName)...)
		errs = append(errs, distinct(names, c.Name, at.Child("name"))...)
	}
	return errs
}

func validateRule(r *registrationv1.RuleWithOperations, path *field.Path) (errs field.ErrorList) {
	at := path.Child("operations")
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, registrationv1.OperationAll) {
		errs = append(errs, field.Invalid(at, r.Operations, "if '*' is present, must not specify other operations"))
	}
	for i, o := range r.Operations {
		errs = append(errs, supported(at.Index(i), o, registrationv1.OperationAll, registrationv1.Connect,
			registrationv1.Create, registrationv1.Delete, registrationv1.Update)...)
	}
	for _, list := range []struct {
		name, what string
		items      []string
	}{{"apiGroups", "groups", r.APIGroups}, {"apiVersions", "versions", r.APIVersions}} {
		at := path.Child(list.name)
		if len(list.items) == 0 {
			errs = append(errs, field.Required(at, ""))
		}
		if len(list.items) > 1 && slices.Contains(list.items, "*") {
			errs = append(errs, field.Invalid(at, list.items, "if '*' is present, must not specify other API "+
				list.what))
		}
	}
	for i, v := range r.APIVersions {
		if v == "" {
			errs = append(errs, field.Required(path.Child("apiVersions").Index(i), ""))
		}
	}
	errs = append(errs, validateRuleResources(r.Resources, path.Child("resources"))...)
	return append(errs, optional(path.Child("scope"), r.Scope, registrationv1.AllScopes, registrationv1.ClusterScope,
		registrationv1.NamespacedScope)...)
}

func validateRuleResources(resources []string, path *field.Path) (errs field.ErrorList) {
	if len(resources) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	var plain bool // as in the real server, only the last one counts
	for i, pattern := range resources {
		name, sub, below := strings.Cut(pattern, "/")
		switch {
		case pattern == "":
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		case !below:
			plain = pattern != "*"
			continue
		}
		if slices.Contains(resources[:i], name+"/*") {
			errs = append(errs, field.Invalid(path.Index(i), pattern,
				fmt.Sprintf("if '%s/*' is present, must not specify %s", name, pattern)))
		}
		if slices.Contains(resources[:i], "*/"+sub) {
			errs = append(errs, field.Invalid(path.Index(i), pattern,
				fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, pattern)))
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		errs = append(errs, field.Invalid(path, resources, "if '*/*' is present, must not specify other resources"))
	}
	if plain && slices.Contains(resources, "*") {
		errs = append(errs, field.Invalid(path, resources,
			"if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}
