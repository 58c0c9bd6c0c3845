package builtin

import (
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func ingressClass() *resource.Definition {
	d := typed[networkingv1.IngressClass, networkingv1.IngressClassList](networkingv1.SchemeGroupVersion,
		"ingressclasses")
	withGeneration(d, "Spec")
	d.Default = mutate(func(c *networkingv1.IngressClass) {
		if c.Spec.Parameters != nil {
			setDefaultPtr(&c.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
		}
	})
	d.Validate = check(validateIngressClass)
	d.ValidateUpdate = compare(func(c, old *networkingv1.IngressClass) field.ErrorList {
		return immutable(c.Spec.Controller, old.Spec.Controller, field.NewPath("spec", "controller"))
	})
	printed(d, ingressClassRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go validateIngressClassSpec.
func validateIngressClass(c *networkingv1.IngressClass) (errs field.ErrorList) {
	const longest = 250
	path := field.NewPath("spec")
	if len(c.Spec.Controller) > longest {
		errs = append(errs, field.TooLong(path.Child("controller"), "", longest))
	}
	errs = append(errs, validation.IsDomainPrefixedPath(path.Child("controller"), c.Spec.Controller)...)
	if c.Spec.Parameters == nil {
		return errs
	}
	return append(errs, validateClassParameters(c.Spec.Parameters, path.Child("parameters"))...)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go
// validateIngressClassParametersReference.
func validateClassParameters(p *networkingv1.IngressClassParametersReference, path *field.Path) (errs field.ErrorList) {
	if p.APIGroup != nil {
		errs = append(errs, invalid(path.Child("apiGroup"), *p.APIGroup, validation.IsDNS1123Subdomain(*p.APIGroup))...)
	}
	errs = append(errs, requiredSegment(p.Kind, path.Child("kind"))...)
	errs = append(errs, requiredSegment(p.Name, path.Child("name"))...)
	at := path.Child("namespace")
	switch scope := ptr.Deref(p.Scope, ""); scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		if p.Namespace == nil {
			return append(errs, field.Required(at, "`parameters.scope` is set to 'Namespace'"))
		}
		return append(errs, invalid(at, *p.Namespace, apivalidation.ValidateNamespaceName(*p.Namespace, false))...)
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			errs = append(errs, field.Forbidden(at, "`parameters.scope` is set to 'Cluster'"))
		}
		return errs
	default:
		return append(errs, field.NotSupported(path.Child("scope"), scope, []string{
			networkingv1.IngressClassParametersReferenceScopeCluster,
			networkingv1.IngressClassParametersReferenceScopeNamespace,
		}))
	}
}

func ingressClassRow(c *networkingv1.IngressClass, now time.Time) []cell {
	name, parameters := c.Name, "<none>"
	if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
		name += " (default)"
	}
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind + "/" + p.Name
		if p.APIGroup != nil {
			parameters = p.Kind + "." + *p.APIGroup + "/" + p.Name
		}
	}
	return []cell{
		nameColumn(name),
		column("Controller", "string", "Controller that is responsible for handling this class", c.Spec.Controller),
		column("Parameters", "string", "A reference to a resource with additional parameters", parameters),
		ageColumn(c.CreationTimestamp, now),
	}
}
