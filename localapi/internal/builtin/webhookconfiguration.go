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
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
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
