package builtin

//lint:file-ignore SA1019 Endpoints are deprecated; clients that do not know EndpointSlices still read them.

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
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
	d.Validate = rules(validateEndpoints)
	listed(d, func(ep *corev1.Endpoints) []cell {
		return []cell{
			column("Endpoints", "string", corev1.Endpoints{}.SwaggerDoc()["subsets"], endpointsList(ep)),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateEndpointSubsets.
func validateEndpoints(f verify.Field, ep *corev1.Endpoints) {
	verify.Each(f, "subsets", ep.Subsets, func(f verify.Field, s *corev1.EndpointSubset) {
		f.Require("", len(s.Addresses)+len(s.NotReadyAddresses) > 0, "must specify `addresses` or `notReadyAddresses`")
		verify.Each(f, "addresses", s.Addresses, validateEndpointAddress)
		verify.Each(f, "notReadyAddresses", s.NotReadyAddresses, validateEndpointAddress)
		verify.Each(f, "ports", s.Ports, func(f verify.Field, p *corev1.EndpointPort) {
			f.Require("name", p.Name != "" || len(s.Ports) == 1, "")
			f.MatchIfSet("name", p.Name, validation.IsDNS1123Label)
			f.Port("port", p.Port)
			validateProtocol(f, p.Protocol)
			f.MatchPointer("appProtocol", p.AppProtocol, validation.IsQualifiedName)
		})
	})
}

func validateEndpointAddress(f verify.Field, a *corev1.EndpointAddress) {
	f.Add(validation.IsValidIPForLegacyField(f.Path("ip"), a.IP, true, nil)...)
	f.MatchIfSet("hostname", a.Hostname, validation.IsDNS1123Label)
	f.MatchPointer("nodeName", a.NodeName, validation.IsDNS1123Subdomain)
	reachableIP(f.Child("ip"), a.IP)
}

// reachableIP rejects addresses that mean something else on every machine.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateEndpointIP.
func reachableIP(f verify.Field, value string) {
	ip, err := netip.ParseAddr(value)
	f.Reject("", err != nil, value, "must be a valid IP address")
	f.Reject("", ip.IsUnspecified(), value, "may not be unspecified ("+value+")")
	f.Reject("", ip.IsLoopback(), value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	f.Reject("", ip.IsLinkLocalUnicast(), value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	f.Reject("", ip.IsLinkLocalMulticast(), value,
		"may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
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
