package builtin

import (
	"cmp"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func endpointSlice() *resource.Definition {
	d := namespaced[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](discoveryv1.SchemeGroupVersion,
		"endpointslices")
	d.Default = mutate(func(s *discoveryv1.EndpointSlice) {
		for i := range s.Ports {
			setDefaultPtr(&s.Ports[i].Name, "")
			setDefaultPtr(&s.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	})
	d.PrepareCreate = prepare(func(s *discoveryv1.EndpointSlice) { s.Generation = 1 })
	d.PrepareUpdate = carry(prepareEndpointSliceUpdate)
	d.Validate = rules(validateEndpointSlice)
	d.ValidateUpdate = fixed(verify.Field.Unchanged, "addressType")
	listed(d, endpointSliceRow)
	return d
}

// prepareEndpointSliceUpdate bumps the generation for labels too: they say which Service the slice belongs to.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/discovery/endpointslice/strategy.go PrepareForUpdate.
func prepareEndpointSliceUpdate(s, old *discoveryv1.EndpointSlice) {
	same := s.AddressType == old.AddressType && equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) &&
		equality.Semantic.DeepEqual(s.Ports, old.Ports) && equality.Semantic.DeepEqual(s.Labels, old.Labels)
	if !same {
		s.Generation = old.Generation + 1
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/discovery/validation/validation.go ValidateEndpointSlice.
func validateEndpointSlice(f verify.Field, s *discoveryv1.EndpointSlice) {
	const maxPorts, maxEndpoints = 20000, 1000
	verify.OneOf(f, "addressType", s.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4,
		discoveryv1.AddressTypeIPv6)
	if f.AtMost("ports", len(s.Ports), maxPorts); len(s.Ports) <= maxPorts {
		validateSlicePorts(f, s.Ports)
	}
	if f.AtMost("endpoints", len(s.Endpoints), maxEndpoints); len(s.Endpoints) > maxEndpoints {
		return
	}
	verify.Each(f, "endpoints", s.Endpoints, func(f verify.Field, e *discoveryv1.Endpoint) {
		f.AtMost("addresses", len(e.Addresses), 100)
		for i, a := range e.Addresses {
			validateSliceAddress(f.Child("addresses"), i, a, s.AddressType)
		}
		f.MatchPointer("nodeName", e.NodeName, validation.IsDNS1123Subdomain)
		f.MatchPointer("hostname", e.Hostname, validation.IsDNS1123Label)
	})
	verify.Each(f, "endpoints", s.Endpoints, func(f verify.Field, e *discoveryv1.Endpoint) {
		f.Require("addresses", len(e.Addresses) > 0, "")
	})
}

func validateSlicePorts(f verify.Field, ports []discoveryv1.EndpointPort) {
	names := sets.New[string]()
	verify.Each(f, "ports", ports, func(f verify.Field, p *discoveryv1.EndpointPort) {
		f.MatchIfSet("name", ptr.Deref(p.Name, ""), validation.IsDNS1123Label)
		verify.Unique(f, "name", names, ptr.Deref(p.Name, ""))
		validateProtocol(f, ptr.Deref(p.Protocol, ""))
		f.MatchPointer("appProtocol", p.AppProtocol, validation.IsQualifiedName)
	})
}

func validateSliceAddress(f verify.Field, i int, address string, kind discoveryv1.AddressType) {
	switch kind {
	case discoveryv1.AddressTypeFQDN:
		f.Add(validation.IsFullyQualifiedDomainName(f.Path("").Index(i), address)...)
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
		if errs := validation.IsValidIPForLegacyField(f.Path("").Index(i), address, true, nil); len(errs) > 0 {
			f.Add(errs...)
			return
		}
		ip, err := netip.ParseAddr(address)
		f.Reject("", err == nil && ip.Is4() != (kind == discoveryv1.AddressTypeIPv4), address,
			"must be an "+string(kind)+" address")
		reachableIP(f.Index(i), address)
	}
}

func endpointSliceRow(s *discoveryv1.EndpointSlice) []cell {
	const shown = 3
	var ports, addresses []string
	for i := range s.Ports {
		switch p := &s.Ports[i]; {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case p.Name != nil:
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	for i := range s.Endpoints {
		addresses = append(addresses, s.Endpoints[i].Addresses...)
	}
	doc := discoveryv1.EndpointSlice{}.SwaggerDoc()
	return []cell{
		column("AddressType", "string", doc["addressType"], string(s.AddressType)),
		column("Ports", "string", doc["ports"], cmp.Or(firstFew(ports, shown), "<unset>")),
		column("Endpoints", "string", doc["endpoints"], cmp.Or(firstFew(addresses, shown), "<unset>")),
	}
}
