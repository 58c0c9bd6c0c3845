package builtin

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// ingressClassAnnotation named the class of an Ingress before there was a field.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

func ingress() *resource.Definition {
	d := namespaced[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, "ingresses", "ing")
	withStatus(d)
	withGeneration(d, "Spec")
	d.Validate = check(validateIngress)
	d.ValidateCreate = check(validateIngressAnnotation)
	d.ValidateStatusUpdate = compare(validateIngressStatus)
	d.Warnings = func(obj, old runtime.Object) []string {
		i := obj.(*networkingv1.Ingress)
		if _, ok := i.Annotations[ingressClassAnnotation]; old != nil || !ok || i.Spec.IngressClassName != nil {
			return nil
		}
		return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead",
			ingressClassAnnotation)}
	}
	printed(d, ingressRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go ValidateIngressSpec.
func validateIngress(i *networkingv1.Ingress) (errs field.ErrorList) {
	path, spec := field.NewPath("spec"), &i.Spec
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(path, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(spec.DefaultBackend, path.Child("defaultBackend"))...)
	}
	for n := range spec.Rules {
		errs = append(errs, validateIngressRule(&spec.Rules[n], path.Child("rules").Index(n))...)
	}
	for n, tls := range spec.TLS {
		at := path.Child("tls").Index(n)
		for h, host := range tls.Hosts {
			errs = append(errs, validateHost(host, at.Child("hosts").Index(h))...)
		}
		errs = append(errs, optionalName(tls.SecretName, apivalidation.NameIsDNSSubdomain, at.Child("secretName"))...)
	}
	if class := spec.IngressClassName; class != nil {
		errs = append(errs,
			invalid(path.Child("ingressClassName"), *class, apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	return errs
}

func validateIngressAnnotation(i *networkingv1.Ingress) field.ErrorList {
	value, ok := i.Annotations[ingressClassAnnotation]
	if class := i.Spec.IngressClassName; !ok || class == nil || *class == value {
		return nil
	}
	path := field.NewPath("annotations").Child(ingressClassAnnotation)
	return field.ErrorList{field.Invalid(path, value, "must match `ingressClassName` when both are specified")}
}

func validateHost(host string, path *field.Path) field.ErrorList {
	if strings.Contains(host, "*") {
		return invalid(path, host, validation.IsWildcardDNS1123Subdomain(host))
	}
	return invalid(path, host, validation.IsDNS1123Subdomain(host))
}

func validateIngressRule(rule *networkingv1.IngressRule, path *field.Path) (errs field.ErrorList) {
	if rule.Host != "" {
		errs = append(errs, notAnIP(rule.Host, path.Child("host"))...)
		errs = append(errs, validateHost(rule.Host, path.Child("host"))...)
	}
	if rule.HTTP == nil {
		return errs
	}
	paths := path.Child("http", "paths")
	if len(rule.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i := range rule.HTTP.Paths {
		errs = append(errs, validateIngressPath(&rule.HTTP.Paths[i], paths.Index(i))...)
	}
	return errs
}

func notAnIP(host string, path *field.Path) field.ErrorList {
	if netutils.ParseIPSloppy(host) == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
}

func validateIngressPath(p *networkingv1.HTTPIngressPath, path *field.Path) (errs field.ErrorList) {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	absolute := strings.HasPrefix(p.Path, "/")
	at := path.Child("path")
	bad := func(message string) { errs = append(errs, field.Invalid(at, p.Path, message)) }
	switch kind := *p.PathType; kind {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		if !absolute {
			bad("must be an absolute path")
		}
		for _, s := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, s) {
				bad("must not contain '" + s + "'")
			}
		}
		for _, s := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, s) {
				bad("cannot end with '" + s + "'")
			}
		}
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !absolute {
			bad("must be an absolute path")
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("pathType"), kind, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific,
			networkingv1.PathTypePrefix,
		}))
	}
	return append(errs, validateBackend(&p.Backend, path.Child("backend"))...)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go validateIngressBackend.
func validateBackend(b *networkingv1.IngressBackend, path *field.Path) (errs field.ErrorList) {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return validateLocalReference(b.Resource, path.Child("resource"))
	case b.Service == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	}
	service := path.Child("service")
	if b.Service.Name == "" {
		errs = append(errs, field.Required(service.Child("name"), ""))
	} else {
		errs = append(errs,
			invalid(service.Child("name"), b.Service.Name, apivalidation.NameIsDNSLabel(b.Service.Name, false))...)
	}
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, invalid(service.Child("port", "name"), port.Name, validation.IsValidPortName(port.Name))...)
	case port.Number != 0:
		errs = append(errs,
			invalid(service.Child("port", "number"), port.Number, validation.IsValidPortNum(int(port.Number)))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

// validateLocalReference validates a reference to an object of any type.
func validateLocalReference(ref *corev1.TypedLocalObjectReference, path *field.Path) (errs field.ErrorList) {
	if ref.APIGroup != nil {
		errs = append(errs,
			invalid(path.Child("apiGroup"), *ref.APIGroup, validation.IsDNS1123Subdomain(*ref.APIGroup))...)
	}
	errs = append(errs, requiredSegment(ref.Kind, path.Child("kind"))...)
	return append(errs, requiredSegment(ref.Name, path.Child("name"))...)
}

func requiredSegment(value string, path *field.Path) field.ErrorList {
	return required(value, path, content.IsPathSegmentName)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go ValidateIngressLoadBalancerStatus.
func validateIngressStatus(i, old *networkingv1.Ingress) (errs field.ErrorList) {
	path := field.NewPath("status", "loadBalancer", "ingress")
	var were []string
	for _, point := range old.Status.LoadBalancer.Ingress {
		were = append(were, point.IP)
	}
	for n, point := range i.Status.LoadBalancer.Ingress {
		if point.IP != "" {
			errs = append(errs, validation.IsValidIPForLegacyField(path.Index(n).Child("ip"), point.IP, true, were)...)
		}
		if point.Hostname != "" {
			at := path.Index(n).Child("hostname")
			errs = append(errs, invalid(at, point.Hostname, validation.IsDNS1123Subdomain(point.Hostname))...)
			errs = append(errs, notAnIP(point.Hostname, at)...)
		}
	}
	return errs
}

func ingressRow(i *networkingv1.Ingress, now time.Time) []cell {
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	addresses := sets.New[string]()
	for _, point := range i.Status.LoadBalancer.Ingress {
		if address := cmp.Or(point.IP, point.Hostname); address != "" {
			addresses.Insert(address)
		}
	}
	return []cell{
		nameColumn(i.Name),
		column("Class", "string",
			"The name of the IngressClass resource that should be used for additional configuration",
			ptr.Deref(i.Spec.IngressClassName, "<none>")),
		column("Hosts", "string", "Hosts that incoming requests are matched against before the ingress rule",
			ingressHosts(i.Spec.Rules)),
		column("Address", "string", "Address is a list containing ingress points for the load-balancer",
			strings.Join(sets.List(addresses), ",")),
		column("Ports", "string", "Ports of TLS configurations that open", ports),
		ageColumn(i.CreationTimestamp, now),
	}
}

// ingressHosts prints the first three hosts.
func ingressHosts(rules []networkingv1.IngressRule) string {
	const shown = 3
	var hosts []string
	more := false
	for _, rule := range rules {
		more = more || len(hosts) == shown
		if !more && rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	switch {
	case len(hosts) == 0:
		return "*"
	case more:
		return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(rules)-shown)
	}
	return strings.Join(hosts, ",")
}
