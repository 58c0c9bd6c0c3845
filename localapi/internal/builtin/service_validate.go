package builtin

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateServiceStatusUpdate. It knows
// where load balancers belong, not what their addresses look like.
func validateServiceStatus(f verify.Field, s, _ *corev1.Service) {
	f.Forbid("status.loadBalancer.ingress",
		s.Spec.Type != corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) > 0,
		"may only be used when `spec.type` is 'LoadBalancer'")
}

// validateService validates a Service after its addresses and ports were allocated.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateService.
func validateService(f verify.Field, s *corev1.Service) {
	f, spec := f.Child("spec"), &s.Spec
	f.Require("ports", len(spec.Ports) > 0 || isHeadless(s) || !hasClusterIP(s), "")
	validateServiceType(f, s)
	validateServicePorts(f, s)
	f.Labels("selector", spec.Selector)
	validateAffinity(f, spec)
	validateClusterIPs(f, s)
	for i, ip := range spec.ExternalIPs {
		at := f.Child("externalIPs").Index(i)
		if own := validation.IsValidIPForLegacyField(at.Path(""), ip, true, nil); len(own) > 0 {
			f.Add(own...)
		} else {
			reachableIP(at, ip)
		}
	}
	verify.OneOf(f, "type", spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	validateTraffic(f, s)
}

func validateServiceType(f verify.Field, s *corev1.Service) {
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		f.Reject("clusterIPs[0]", isHeadless(s), corev1.ClusterIPNone,
			"may not be set to 'None' for "+string(s.Spec.Type)+" services")
	case corev1.ServiceTypeExternalName:
		const refusal = "may not be set for ExternalName services"
		f.Forbid("clusterIPs", len(s.Spec.ClusterIPs) > 0, refusal)
		f.Forbid("ipFamilies", len(s.Spec.IPFamilies) > 0, refusal)
		f.Forbid("ipFamilyPolicy", s.Spec.IPFamilyPolicy != nil, refusal)
		f.RequireMatch("externalName", strings.TrimSuffix(s.Spec.ExternalName, "."), validation.IsDNS1123Subdomain)
	}
}

// validateServicePorts validates each port, and that no two share a name, or a number or node port of one protocol.
func validateServicePorts(f verify.Field, s *corev1.Service) {
	type key struct {
		protocol corev1.Protocol
		number   int32
	}
	names, numbers, nodePorts := sets.New[string](), sets.New[key](), sets.New[key]()
	verify.Each(f, "ports", s.Spec.Ports, func(f verify.Field, p *corev1.ServicePort) {
		if p.Name != "" {
			f.Match("name", p.Name, validation.IsDNS1123Label)
			verify.Unique(f, "name", names, p.Name)
		} else {
			f.Require("name", len(s.Spec.Ports) == 1, "")
		}
		f.Port("port", p.Port)
		validateProtocol(f, p.Protocol)
		portNumOrName(f, "targetPort", p.TargetPort)
		f.MatchPointer("appProtocol", p.AppProtocol, validation.IsQualifiedName)
		if p.NodePort != 0 {
			f.Forbid("nodePort", s.Spec.Type == corev1.ServiceTypeClusterIP,
				"may not be used when `type` is 'ClusterIP'")
			verify.UniqueAs(f, "nodePort", nodePorts, key{p.Protocol, p.NodePort}, p.NodePort)
		}
		number := key{p.Protocol, p.Port}
		if numbers.Has(number) {
			f.Duplicate("", true, shown(corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		numbers.Insert(number)
	})
}

func validateAffinity(f verify.Field, spec *corev1.ServiceSpec) {
	const day = 24 * 60 * 60
	verify.OneOf(f, "sessionAffinity", spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
		t := ptr.Deref(c.ClientIP.TimeoutSeconds, day)
		f.Reject("sessionAffinityConfig.clientIP.timeoutSeconds", t <= 0 || t > day, t,
			"must be greater than 0 and less than 86400")
	}
}

// validateClusterIPs validates the addresses and their families, which the server has filled in where the client did
// not.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateServiceClusterIPsRelatedFields.
func validateClusterIPs(f verify.Field, s *corev1.Service) {
	if !hasClusterIP(s) {
		return
	}
	spec := &s.Spec
	switch {
	case len(spec.ClusterIPs) == 0:
		f.Require("clusterIPs", spec.ClusterIP == "", "")
	case spec.ClusterIP == "":
		f.Reject("clusterIPs", true, spec.ClusterIPs, "must be empty when `clusterIP` is not specified")
	default:
		f.Reject("clusterIPs", spec.ClusterIPs[0] != spec.ClusterIP, spec.ClusterIPs,
			"first value must match `clusterIP`")
	}
	validateFamilies(f, spec)
	valid := f.Passes(func(f verify.Field) { validateAddresses(f.Child("clusterIPs"), spec) })
	if valid && !isHeadless(s) {
		matchFamilies(f.Child("clusterIPs"), spec)
	}
}

func validateFamilies(f verify.Field, spec *corev1.ServiceSpec) {
	seen := sets.New[corev1.IPFamily]()
	verify.Each(f, "ipFamilies", spec.IPFamilies, func(f verify.Field, family *corev1.IPFamily) {
		verify.Supported(f, "", *family, corev1.IPv4Protocol, corev1.IPv6Protocol)
		verify.Unique(f, "", seen, *family)
	})
	if p := spec.IPFamilyPolicy; p != nil {
		verify.OneOf(f, "ipFamilyPolicy", *p, corev1.IPFamilyPolicyPreferDualStack,
			corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)
	}
}

func validateAddresses(f verify.Field, spec *corev1.ServiceSpec) {
	for i, ip := range spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			f.Reject("", len(spec.ClusterIPs) > 1, spec.ClusterIPs, "'None' must be the first and only value")
			continue
		}
		f.Add(validation.IsValidIPForLegacyField(f.Path("").Index(i), ip, true, nil)...)
	}
	f.Reject("", len(spec.ClusterIPs) > 2, spec.ClusterIPs, "may only hold up to 2 values")
}

func matchFamilies(f verify.Field, spec *corev1.ServiceSpec) {
	f.Reject("", len(spec.ClusterIPs) == 2 && familyOf(spec.ClusterIPs[0]) == familyOf(spec.ClusterIPs[1]),
		spec.ClusterIPs, "may specify no more than one IP for each IP family")
	for i, ip := range spec.ClusterIPs {
		if i < len(spec.IPFamilies) {
			f.Index(i).Rejectf("", familyOf(ip) != spec.IPFamilies[i], ip,
				"expected an %s value as indicated by `ipFamilies[%d]`", spec.IPFamilies[i], i)
		}
	}
}

func familyOf(ip string) corev1.IPFamily {
	if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// validateTraffic validates the policies, and that the fields of load balancers are set only on these.
func validateTraffic(f verify.Field, s *corev1.Service) {
	const onlyBalancers = "may only be used when `type` is 'LoadBalancer'"
	spec := &s.Spec
	isBalancer := spec.Type == corev1.ServiceTypeLoadBalancer
	f.Forbid("LoadBalancerSourceRanges", len(spec.LoadBalancerSourceRanges) > 0 && !isBalancer, onlyBalancers)
	f.Forbid("allocateLoadBalancerNodePorts", spec.AllocateLoadBalancerNodePorts != nil && !isBalancer, onlyBalancers)
	f.Forbid("loadBalancerClass", spec.LoadBalancerClass != nil && !isBalancer, onlyBalancers)
	if reachableFromOutside(s) {
		verify.OneOf(f, "externalTrafficPolicy", spec.ExternalTrafficPolicy,
			corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	} else {
		f.Reject("externalTrafficPolicy", spec.ExternalTrafficPolicy != "", spec.ExternalTrafficPolicy,
			"may only be set for externally-accessible services")
	}
	f.Reject("healthCheckNodePort", spec.HealthCheckNodePort != 0 && !hasHealthPort(s), spec.HealthCheckNodePort,
		"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
	if p := spec.InternalTrafficPolicy; p != nil {
		verify.OneOf(f, "internalTrafficPolicy", *p, corev1.ServiceInternalTrafficPolicyCluster,
			corev1.ServiceInternalTrafficPolicyLocal)
	}
	if p := spec.TrafficDistribution; p != nil {
		verify.OneOf(f, "trafficDistribution", *p, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	}
}

// validateServiceUpdate checks that a Service keeps its first address and family as long as it has any.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validateUpgradeDowngradeClusterIPs,
// validateUpgradeDowngradeIPFamilies.
func validateServiceUpdate(f verify.Field, s, old *corev1.Service) {
	if !hasClusterIP(s) || !hasClusterIP(old) || (isHeadless(s) && isHeadless(old)) {
		return
	}
	f, now, was := f.Child("spec"), &s.Spec, &old.Spec
	keepsFirst(f.Child("clusterIPs"), now.ClusterIPs, was.ClusterIPs, "clusterIP")
	if isHeadless(s) == isHeadless(old) {
		keepsFirst(f.Child("ipFamilies"), now.IPFamilies, was.IPFamilies, "ipFamily")
	}
	f.Reject("ipFamilyPolicy", len(now.ClusterIPs) == 1 && len(was.ClusterIPs) == 2 &&
		ptr.Deref(now.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack, now.IPFamilyPolicy,
		"must be set to 'SingleStack' when releasing the secondary clusterIP")
	f.Reject("loadBalancerClass", was.Type == corev1.ServiceTypeLoadBalancer && now.Type == was.Type &&
		!ptr.Equal(now.LoadBalancerClass, was.LoadBalancerClass), now.LoadBalancerClass, "may not change once set")
}

// keepsFirst checks that a list only grows or shrinks at its end.
func keepsFirst[T comparable](f verify.Field, now, was []T, name string) {
	if len(now) == 0 {
		f.Index(0).Reject("", len(was) > 0, now, "primary "+name+" can not be unset")
		return
	}
	for i := range min(len(now), len(was)) {
		if now[i] != was[i] {
			f.Index(i).Reject("", true, now, "may not change once set")
			return
		}
	}
}
