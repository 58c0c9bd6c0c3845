package builtin

import (
	"cmp"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
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
	d.Validate = check(validateEndpointSlice)
	d.ValidateUpdate = compare(func(s, old *discoveryv1.EndpointSlice) field.ErrorList {
		if s.AddressType == old.AddressType {
			return nil
		}
		return field.ErrorList{field.Invalid(field.NewPath("addressType"), nil, "field is immutable")}
	})
	printed(d, endpointSliceRow)
	return d
}

// prepareEndpointSliceUpdate bumps the generation for labels too: they say which Service the slice belongs to.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/discovery/endpointslice/strategy.go PrepareForUpdate.
func prepareEndpointSliceUpdate(s, old *discoveryv1.EndpointSlice) {
	same := s.AddressType == old.AddressType && equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints) &&
		equality.Semantic.DeepEqual(s.Ports, old.Ports) && equality.Semantic.DeepEqual(s.Labels, old.Labels)
	if !same {
		s.Generation = old.Generation + 1
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/discovery/validation/validation.go ValidateEndpointSlice.
func validateEndpointSlice(s *discoveryv1.EndpointSlice) field.ErrorList {
	const maxPorts, maxEndpoints = 20000, 1000
	errs := oneOf(field.NewPath("addressType"), s.AddressType, discoveryv1.AddressTypeFQDN,
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	ports, list := field.NewPath("ports"), field.NewPath("endpoints")
	if len(s.Ports) > maxPorts {
		errs = append(errs, field.TooMany(ports, len(s.Ports), maxPorts))
	} else {
		errs = append(errs, validateSlicePorts(s.Ports, ports)...)
	}
	if len(s.Endpoints) > maxEndpoints {
		return append(errs, field.TooMany(list, len(s.Endpoints), maxEndpoints))
	}
	for i := range s.Endpoints {
		errs = append(errs, validateSliceEndpoint(&s.Endpoints[i], s.AddressType, list.Index(i))...)
	}
	for i := range s.Endpoints {
		if len(s.Endpoints[i].Addresses) == 0 {
			errs = append(errs, field.Required(list.Index(i).Child("addresses"), ""))
		}
	}
	return errs
}

func validateSlicePorts(ports []discoveryv1.EndpointPort, path *field.Path) (errs field.ErrorList) {
	names := sets.New[string]()
	for i := range ports {
		p, at := &ports[i], path.Index(i)
		if name := ptr.Deref(p.Name, ""); name != "" {
			errs = append(errs, dnsLabel(name, at.Child("name"))...)
		}
		errs = append(errs, unique(names, ptr.Deref(p.Name, ""), at.Child("name"))...)
		errs = append(errs, validateProtocol(ptr.Deref(p.Protocol, ""), at.Child("protocol"))...)
		if p.AppProtocol != nil {
			errs = append(errs, qualifiedName(*p.AppProtocol, at.Child("appProtocol"))...)
		}
	}
	return errs
}

func validateSliceEndpoint(e *discoveryv1.Endpoint, kind discoveryv1.AddressType, path *field.Path) field.ErrorList {
	const maxAddresses = 100
	var errs field.ErrorList
	addresses := path.Child("addresses")
	if len(e.Addresses) > maxAddresses {
		errs = append(errs, field.TooMany(addresses, len(e.Addresses), maxAddresses))
	}
	for i, a := range e.Addresses {
		errs = append(errs, validateSliceAddress(a, kind, addresses, i)...)
	}
	if e.NodeName != nil {
		errs = append(errs,
			invalid(path.Child("nodeName"), *e.NodeName, apivalidation.NameIsDNSSubdomain(*e.NodeName, false))...)
	}
	if e.Hostname != nil {
		errs = append(errs, dnsLabel(*e.Hostname, path.Child("hostname"))...)
	}
	return errs
}

func validateSliceAddress(address string, kind discoveryv1.AddressType, path *field.Path, i int) field.ErrorList {
	switch kind {
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(path.Index(i), address)
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
		if errs := validation.IsValidIPForLegacyField(path.Index(i), address, true, nil); len(errs) > 0 {
			return errs
		}
		var errs field.ErrorList
		ip, err := netip.ParseAddr(address)
		if err == nil && ip.Is4() != (kind == discoveryv1.AddressTypeIPv4) {
			errs = append(errs, field.Invalid(path, address, "must be an "+string(kind)+" address"))
		}
		return append(errs, reachableIP(address, path.Index(i))...)
	}
	return nil
}

func endpointSliceRow(s *discoveryv1.EndpointSlice, now time.Time) []cell {
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
		nameColumn(s.Name),
		column("AddressType", "string", doc["addressType"], string(s.AddressType)),
		column("Ports", "string", doc["ports"], cmp.Or(firstFew(ports, shown), "<unset>")),
		column("Endpoints", "string", doc["endpoints"], cmp.Or(firstFew(addresses, shown), "<unset>")),
		ageColumn(s.CreationTimestamp, now),
	}
}
