package builtin

import (
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// serviceCIDR is only stored: Services get addresses of the fixed ranges, which the object kubernetes names.
func serviceCIDR() *resource.Definition {
	d := typed[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](networkingv1.SchemeGroupVersion, "servicecidrs")
	withStatus(d)
	statusKeepsMetadata(d)
	d.ValidateCreate = rules(func(f verify.Field, c *networkingv1.ServiceCIDR) { validateCIDRs(f, c.Spec.CIDRs) })
	d.ValidateUpdate = updateRules(func(f verify.Field, c, old *networkingv1.ServiceCIDR) {
		now, was := c.Spec.CIDRs, old.Spec.CIDRs
		toDual := len(was) == 1 && len(now) == 2
		if !toDual && len(was) != len(now) {
			f.Reject("spec.cidrs", true, now, apivalidation.FieldImmutableErrorMsg)
			return
		}
		for i := range was {
			f.Child("spec.cidrs").Index(i).Immutable("", now[i], was[i])
		}
		if toDual {
			validateCIDRs(f, now)
		}
	})
	listed(d, func(c *networkingv1.ServiceCIDR) []cell {
		return []cell{column("CIDRs", "string", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"],
			strings.Join(c.Spec.CIDRs, ","))}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go validateServiceCIDRSpec.
func validateCIDRs(f verify.Field, list []string) {
	f = f.Child("spec.cidrs")
	switch {
	case len(list) == 0:
		f.Require("", false, "at least one CIDR required")
		return
	case len(list) > 2:
		f.Reject("", true, shown(networkingv1.ServiceCIDRSpec{CIDRs: list}), "may only hold up to 2 values")
		return
	}
	for i, cidr := range list {
		f.Add(validation.IsValidCIDR(f.Path("").Index(i), cidr)...)
	}
	family := netutils.IPFamilyOfCIDRString(list[0])
	f.Reject("", len(list) == 2 && family != netutils.IPFamilyUnknown &&
		family == netutils.IPFamilyOfCIDRString(list[1]), list,
		"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
}

// ipAddress is only stored: an address is neither reserved by such an object, nor does a Service get one.
func ipAddress() *resource.Definition {
	d := typed[networkingv1.IPAddress, networkingv1.IPAddressList](networkingv1.SchemeGroupVersion, "ipaddresses", "ip")
	d.ValidateName = func(name string, _ bool) (problems []string) {
		for _, err := range validation.IsValidIP(nil, name) {
			problems = append(problems, err.Detail)
		}
		return problems
	}
	d.Validate = rules(func(f verify.Field, a *networkingv1.IPAddress) {
		f.Require("spec.parentRef", a.Spec.ParentRef != nil, "")
		if ref := a.Spec.ParentRef; ref != nil {
			f.MatchIfSet("spec.parentRef.group", ref.Group, validation.IsDNS1123Subdomain)
			f.RequireMatch("spec.parentRef.resource", ref.Resource, content.IsPathSegmentName)
			f.RequireMatch("spec.parentRef.name", ref.Name, content.IsPathSegmentName)
			f.MatchIfSet("spec.parentRef.namespace", ref.Namespace, content.IsPathSegmentName)
		}
	})
	d.ValidateUpdate = fixed(verify.Field.Unchanged, "spec.parentRef")
	printed(d, func(a *networkingv1.IPAddress, _ time.Time) []cell {
		parent := "<none>"
		if ref := a.Spec.ParentRef; ref != nil {
			parent = strings.ToLower(schema.GroupResource{Group: ref.Group, Resource: ref.Resource}.String())
			if ref.Namespace != "" {
				parent += "/" + ref.Namespace
			}
			parent += "/" + ref.Name
		}
		return []cell{
			nameColumn(a.Name),
			column("ParentRef", "string", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"], parent),
		}
	})
	return d
}
