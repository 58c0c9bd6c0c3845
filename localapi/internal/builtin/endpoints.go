package builtin

//lint:file-ignore SA1019 Endpoints are deprecated; clients that do not know EndpointSlices still read them.

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func endpoints() *resource.Definition {
	d := namespaced[corev1.Endpoints, corev1.EndpointsList](corev1.SchemeGroupVersion, "endpoints", "ep")
	d.CreateOnUpdate = true
	d.Deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
	d.Default = mutate(func(ep *corev1.Endpoints) {
		for i := range ep.Subsets {
			for j := range ep.Subsets[i].Ports {
				setDefault(&ep.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	})
	d.Validate = check(validateEndpoints)
	printed(d, func(ep *corev1.Endpoints, now time.Time) []cell {
		return []cell{
			nameColumn(ep.Name),
			column("Endpoints", "string", corev1.Endpoints{}.SwaggerDoc()["subsets"], endpointsList(ep)),
			ageColumn(ep.CreationTimestamp, now),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateEndpointSubsets.
func validateEndpoints(ep *corev1.Endpoints) (errs field.ErrorList) {
	for i := range ep.Subsets {
		s, path := &ep.Subsets[i], field.NewPath("subsets").Index(i)
		if len(s.Addresses) == 0 && len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range s.Addresses {
			errs = append(errs, validateEndpointAddress(&s.Addresses[j], path.Child("addresses").Index(j))...)
		}
		for j := range s.NotReadyAddresses {
			errs = append(errs,
				validateEndpointAddress(&s.NotReadyAddresses[j], path.Child("notReadyAddresses").Index(j))...)
		}
		for j := range s.Ports {
			errs = append(errs, validateEndpointPort(&s.Ports[j], len(s.Ports) > 1, path.Child("ports").Index(j))...)
		}
	}
	return errs
}

func validateEndpointAddress(a *corev1.EndpointAddress, path *field.Path) field.ErrorList {
	errs := validation.IsValidIPForLegacyField(path.Child("ip"), a.IP, true, nil)
	if a.Hostname != "" {
		errs = append(errs, dnsLabel(a.Hostname, path.Child("hostname"))...)
	}
	if a.NodeName != nil {
		errs = append(errs,
			invalid(path.Child("nodeName"), *a.NodeName, apivalidation.NameIsDNSSubdomain(*a.NodeName, false))...)
	}
	return append(errs, reachableIP(a.IP, path.Child("ip"))...)
}

// reachableIP rejects addresses that mean something else on every machine.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateEndpointIP.
func reachableIP(value string, path *field.Path) (errs field.ErrorList) {
	ip, err := netip.ParseAddr(value)
	if err != nil {
		return field.ErrorList{field.Invalid(path, value, "must be a valid IP address")}
	}
	if ip.IsUnspecified() {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("may not be unspecified (%v)", value)))
	}
	if ip.IsLoopback() {
		errs = append(errs, field.Invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
	}
	if ip.IsLinkLocalUnicast() {
		errs = append(errs,
			field.Invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
	}
	if ip.IsLinkLocalMulticast() {
		errs = append(errs,
			field.Invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))
	}
	return errs
}

func validateEndpointPort(p *corev1.EndpointPort, needsName bool, path *field.Path) (errs field.ErrorList) {
	if p.Name != "" {
		errs = append(errs, dnsLabel(p.Name, path.Child("name"))...)
	} else if needsName {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, invalid(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	errs = append(errs, validateProtocol(p.Protocol, path.Child("protocol"))...)
	if p.AppProtocol != nil {
		errs = append(errs, qualifiedName(*p.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}

// endpointsList prints the first three ready addresses with their ports, and how many more there are.
func endpointsList(ep *corev1.Endpoints) string {
	const shown = 3
	var list []string
	for i := range ep.Subsets {
		s := &ep.Subsets[i]
		if len(s.Ports) == 0 {
			for j := range s.Addresses {
				list = append(list, s.Addresses[j].IP)
			}
		}
		for j := range s.Ports {
			port := strconv.Itoa(int(s.Ports[j].Port))
			for k := range s.Addresses {
				list = append(list, net.JoinHostPort(s.Addresses[k].IP, port))
			}
		}
	}
	if len(ep.Subsets) == 0 {
		return "<none>"
	}
	return firstFew(list, shown)
}

// firstFew joins at most n entries and counts the others.
func firstFew(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ",")
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(list[:n], ","), len(list)-n)
}
