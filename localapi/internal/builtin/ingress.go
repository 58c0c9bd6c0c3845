package builtin

import (
	"cmp"
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// ingressClassAnnotation named the class of an Ingress before there was a field.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

func ingress() *resource.Definition {
	d := namespaced[networkingv1.Ingress, networkingv1.IngressList](networkingv1.SchemeGroupVersion, "ingresses", "ing")
	withStatus(d)
	withGeneration(d, "Spec")
	d.Validate = rules(validateIngress)
	d.ValidateCreate = rules(validateIngressAnnotation)
	d.ValidateStatusUpdate = updateRules(validateIngressStatus)
	d.Warnings = func(obj, old runtime.Object) []string {
		i := obj.(*networkingv1.Ingress)
		if _, ok := i.Annotations[ingressClassAnnotation]; old != nil || !ok || i.Spec.IngressClassName != nil {
			return nil
		}
		return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead",
			ingressClassAnnotation)}
	}
	listed(d, ingressRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go ValidateIngressSpec.
func validateIngress(f verify.Field, i *networkingv1.Ingress) {
	f, spec := f.Child("spec"), &i.Spec
	f.Reject("", len(spec.Rules) == 0 && spec.DefaultBackend == nil, spec.Rules,
		"either `defaultBackend` or `rules` must be specified")
	if spec.DefaultBackend != nil {
		validateBackend(f.Child("defaultBackend"), spec.DefaultBackend)
	}
	verify.Each(f, "rules", spec.Rules, validateIngressRule)
	verify.Each(f, "tls", spec.TLS, func(f verify.Field, tls *networkingv1.IngressTLS) {
		verify.Each(f, "hosts", tls.Hosts, func(f verify.Field, host *string) { validateHost(f, *host) })
		f.MatchIfSet("secretName", tls.SecretName, validation.IsDNS1123Subdomain)
	})
	f.MatchPointer("ingressClassName", spec.IngressClassName, validation.IsDNS1123Subdomain)
}

func validateIngressAnnotation(f verify.Field, i *networkingv1.Ingress) {
	value, ok := i.Annotations[ingressClassAnnotation]
	f.Reject("annotations."+ingressClassAnnotation, ok && ptr.Deref(i.Spec.IngressClassName, value) != value, value,
		"must match `ingressClassName` when both are specified")
}

func validateHost(f verify.Field, host string) {
	if strings.Contains(host, "*") {
		f.Match("", host, validation.IsWildcardDNS1123Subdomain)
	} else {
		f.Match("", host, validation.IsDNS1123Subdomain)
	}
}

func validateIngressRule(f verify.Field, rule *networkingv1.IngressRule) {
	if rule.Host != "" {
		notAnIP(f, "host", rule.Host)
		validateHost(f.Child("host"), rule.Host)
	}
	if rule.HTTP != nil {
		f.Require("http.paths", len(rule.HTTP.Paths) > 0, "")
		verify.Each(f, "http.paths", rule.HTTP.Paths, validateIngressPath)
	}
}

func notAnIP(f verify.Field, name, host string) {
	f.Reject(name, netutils.ParseIPSloppy(host) != nil, host, "must be a DNS name, not an IP address")
}

func validateIngressPath(f verify.Field, p *networkingv1.HTTPIngressPath) {
	if p.PathType == nil {
		f.Require("pathType", false, "pathType must be specified")
		return
	}
	absolute := strings.HasPrefix(p.Path, "/")
	switch *p.PathType {
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
		f.Reject("path", !absolute, p.Path, "must be an absolute path")
		for _, s := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			f.Reject("path", strings.Contains(p.Path, s), p.Path, "must not contain '"+s+"'")
		}
		for _, s := range []string{"/..", "/."} {
			f.Reject("path", strings.HasSuffix(p.Path, s), p.Path, "cannot end with '"+s+"'")
		}
	case networkingv1.PathTypeImplementationSpecific:
		f.Reject("path", p.Path != "" && !absolute, p.Path, "must be an absolute path")
	default:
		verify.Supported(f, "pathType", *p.PathType, networkingv1.PathTypeExact,
			networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
	}
	validateBackend(f.Child("backend"), &p.Backend)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go validateIngressBackend.
func validateBackend(f verify.Field, b *networkingv1.IngressBackend) {
	switch {
	case b.Resource != nil && b.Service != nil:
		f.Reject("", true, "", "cannot set both resource and service backends")
		return
	case b.Resource != nil:
		validateReference(f.Child("resource"), b.Resource.APIGroup, b.Resource.Kind, b.Resource.Name)
		return
	case b.Service == nil:
		f.Reject("", true, "", "resource or service backend is required")
		return
	}
	f.RequireMatch("service.name", b.Service.Name, validation.IsDNS1123Label)
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		f.Reject("", true, "", "cannot set both port name & port number")
	case port.Name != "":
		f.Match("service.port.name", port.Name, validation.IsValidPortName)
	case port.Number != 0:
		f.Port("service.port.number", port.Number)
	default:
		f.Require("", false, "port name or number is required")
	}
}

// validateReference validates a reference to an object of any type.
func validateReference(f verify.Field, group *string, kind, name string) {
	f.MatchPointer("apiGroup", group, validation.IsDNS1123Subdomain)
	f.RequireMatch("kind", kind, content.IsPathSegmentName)
	f.RequireMatch("name", name, content.IsPathSegmentName)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go ValidateIngressLoadBalancerStatus.
func validateIngressStatus(f verify.Field, i, old *networkingv1.Ingress) {
	var were []string
	for _, point := range old.Status.LoadBalancer.Ingress {
		were = append(were, point.IP)
	}
	points := i.Status.LoadBalancer.Ingress
	verify.Each(f, "status.loadBalancer.ingress", points, func(f verify.Field,
		point *networkingv1.IngressLoadBalancerIngress,
	) {
		if point.IP != "" {
			f.Add(validation.IsValidIPForLegacyField(f.Path("ip"), point.IP, true, were)...)
		}
		if point.Hostname != "" {
			f.Match("hostname", point.Hostname, validation.IsDNS1123Subdomain)
			notAnIP(f, "hostname", point.Hostname)
		}
	})
}

func ingressRow(i *networkingv1.Ingress) []cell {
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
		column("Class", "string",
			"The name of the IngressClass resource that should be used for additional configuration",
			ptr.Deref(i.Spec.IngressClassName, "<none>")),
		column("Hosts", "string", "Hosts that incoming requests are matched against before the ingress rule",
			ingressHosts(i.Spec.Rules)),
		column("Address", "string", "Address is a list containing ingress points for the load-balancer",
			strings.Join(sets.List(addresses), ",")),
		column("Ports", "string", "Ports of TLS configurations that open", ports),
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
