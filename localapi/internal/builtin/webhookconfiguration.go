package builtin

import (
	"fmt"
	"slices"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
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
	listed(d, func(c *T) []cell { return countWebhooks(len(c.Webhooks)) })
	return d
}

func validatingWebhookConfiguration() *resource.Definition {
	type T = registrationv1.ValidatingWebhookConfiguration
	d := typed[T, registrationv1.ValidatingWebhookConfigurationList](registrationv1.SchemeGroupVersion,
		"validatingwebhookconfigurations")
	d.Default = mutate(func(c *T) {
		for i := range c.Webhooks {
			w, defaulted := &c.Webhooks[i], AsMutating(&c.Webhooks[i]) // with the same rules and the same service
			defaultWebhook(&defaulted)
			w.FailurePolicy, w.MatchPolicy = defaulted.FailurePolicy, defaulted.MatchPolicy
			w.NamespaceSelector, w.ObjectSelector = defaulted.NamespaceSelector, defaulted.ObjectSelector
			w.TimeoutSeconds = defaulted.TimeoutSeconds
		}
	})
	webhookRules(d, func(obj runtime.Object) (all []registrationv1.MutatingWebhook) {
		for i := range obj.(*T).Webhooks {
			all = append(all, AsMutating(&obj.(*T).Webhooks[i]))
		}
		return all
	})
	listed(d, func(c *T) []cell { return countWebhooks(len(c.Webhooks)) })
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go.
func webhookRules(d *resource.Definition, webhooks func(runtime.Object) []registrationv1.MutatingWebhook) {
	d.Categories = []string{"api-extensions"}
	d.NeedsResourceVersion = true
	withGeneration(d, "Webhooks")
	d.ValidateCreate = notStatic
	d.Validate = rules(func(f verify.Field, obj runtime.Object) { validateWebhooks(f, webhooks(obj)) })
	d.Warnings = func(obj, _ runtime.Object) (all []string) {
		for i, w := range webhooks(obj) {
			all = append(all, ruleWarnings(w.Rules, field.NewPath("webhooks").Index(i).Child("rules"))...)
		}
		return all
	}
}

func countWebhooks(n int) []cell {
	return []cell{column("Webhooks", "integer",
		"Webhooks indicates the number of webhooks registered in this configuration", int64(n))}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/admissionregistration/v1/defaults.go.
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
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/admissionregistration/validation/static_suffix.go.
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
// Source: k8s.io/kubernetes v1.37.2 pkg/kubeapiserver/admission/exclusion/resources.go.
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

// The rules of this file are those of k8s.io/kubernetes v1.37.2 pkg/apis/admissionregistration/validation/validation.go
// for new objects. Leniency towards objects that older servers stored is left out.

func validateWebhooks(f verify.Field, webhooks []registrationv1.MutatingWebhook) {
	names := sets.New[string]()
	verify.Each(f, "webhooks", webhooks, func(f verify.Field, w *registrationv1.MutatingWebhook) {
		validateWebhook(f, w)
		webhookclient.ValidateVersions(f.Child("admissionReviewVersions"), w.AdmissionReviewVersions,
			"must specify one of v1, v1beta1")
		distinct(f, "name", names, w.Name)
	})
}

// distinct is [verify.Unique] for names that may be empty.
func distinct(f verify.Field, field string, names sets.Set[string], name string) {
	if name != "" {
		verify.Unique(f, field, names, name)
	}
}

func validateWebhook(f verify.Field, w *registrationv1.MutatingWebhook) {
	f.Add(validation.IsFullyQualifiedName(f.Path("name"), w.Name)...)
	verify.Each(f, "rules", w.Rules, validateRule)
	verify.SupportedPointer(f, "failurePolicy", w.FailurePolicy, registrationv1.Fail, registrationv1.Ignore)
	verify.SupportedPointer(f, "matchPolicy", w.MatchPolicy, registrationv1.Equivalent, registrationv1.Exact)
	f.Require("sideEffects", w.SideEffects != nil, "must specify one of None, NoneOnDryRun")
	verify.SupportedPointer(f, "sideEffects", w.SideEffects, registrationv1.SideEffectClassNone,
		registrationv1.SideEffectClassNoneOnDryRun)
	s := w.TimeoutSeconds
	f.Reject("timeoutSeconds", s != nil && (*s > 30 || *s < 1), s, "the timeout value must be between 1 and 30 seconds")
	f.LabelSelector("namespaceSelector", w.NamespaceSelector)
	f.LabelSelector("objectSelector", w.ObjectSelector)
	verify.SupportedPointer(f, "reinvocationPolicy", w.ReinvocationPolicy, registrationv1.IfNeededReinvocationPolicy,
		registrationv1.NeverReinvocationPolicy)
	validateClientConfig(f, &w.ClientConfig)
	validateConditions(f, w.MatchConditions)
}

func validateClientConfig(f verify.Field, c *registrationv1.WebhookClientConfig) {
	var service *webhookclient.Service
	if s := c.Service; s != nil {
		service = &webhookclient.Service{
			Namespace: s.Namespace, Name: s.Name, Port: ptr.Deref(s.Port, 0), Path: ptr.Deref(s.Path, ""),
		}
	}
	webhookclient.ValidateTarget(f.Child("clientConfig"), c.URL, service)
}

// validateConditions validates match conditions, but not their expressions.
func validateConditions(f verify.Field, conditions []registrationv1.MatchCondition) {
	const most = 64
	f.AtMost("matchConditions", len(conditions), most)
	names := sets.New[string]()
	verify.Each(f, "matchConditions", conditions, func(f verify.Field, c *registrationv1.MatchCondition) {
		f.Require("expression", strings.TrimSpace(c.Expression) != "", "")
		f.RequireMatch("name", c.Name, validation.IsQualifiedName)
		distinct(f, "name", names, c.Name)
	})
}

func validateRule(f verify.Field, r *registrationv1.RuleWithOperations) {
	f.Require("operations", len(r.Operations) > 0, "")
	f.Reject("operations", len(r.Operations) > 1 && slices.Contains(r.Operations, registrationv1.OperationAll),
		r.Operations, "if '*' is present, must not specify other operations")
	verify.Each(f, "operations", r.Operations, func(f verify.Field, o *registrationv1.OperationType) {
		verify.Supported(f, "", *o, registrationv1.OperationAll, registrationv1.Connect, registrationv1.Create,
			registrationv1.Delete, registrationv1.Update)
	})
	allOrSome(f, "apiGroups", r.APIGroups, "API groups")
	allOrSome(f, "apiVersions", r.APIVersions, "API versions")
	verify.Each(f, "apiVersions", r.APIVersions, func(f verify.Field, v *string) { f.Require("", *v != "", "") })
	validateRuleResources(f, r.Resources)
	verify.SupportedPointer(f, "scope", r.Scope, registrationv1.AllScopes, registrationv1.ClusterScope,
		registrationv1.NamespacedScope)
}

// allOrSome requires a list that either contains only "*" or does not contain it.
func allOrSome(f verify.Field, name string, list []string, what string) {
	f.Require(name, len(list) > 0, "")
	f.Reject(name, len(list) > 1 && slices.Contains(list, "*"), list, "if '*' is present, must not specify other "+what)
}

func validateRuleResources(f verify.Field, resources []string) {
	f.Require("resources", len(resources) > 0, "")
	var plain bool // as in the real server, only the last one counts
	for i, pattern := range resources {
		at := f.Child("resources").Index(i)
		name, sub, below := strings.Cut(pattern, "/")
		switch {
		case pattern == "":
			at.Require("", false, "")
		case !below:
			plain = pattern != "*"
		default:
			for _, other := range []string{name + "/*", "*/" + sub} {
				at.Reject("", slices.Contains(resources[:i], other), pattern,
					"if '"+other+"' is present, must not specify "+pattern)
			}
		}
	}
	f.Reject("resources", len(resources) > 1 && slices.Contains(resources, "*/*"), resources,
		"if '*/*' is present, must not specify other resources")
	f.Reject("resources", plain && slices.Contains(resources, "*"), resources,
		"if '*' is present, must not specify other resources without subresources")
}
