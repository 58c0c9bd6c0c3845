package builtin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateServiceStatusUpdate. It knows
// where load balancers belong, not what their addresses look like.
func validateServiceStatus(s, _ *corev1.Service) field.ErrorList {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) == 0 {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(field.NewPath("status", "loadBalancer", "ingress"),
			"may only be used when `spec.type` is 'LoadBalancer'"),
	}
}

// validateService validates a Service after its addresses and ports were allocated.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateService.
func validateService(s *corev1.Service) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if len(s.Spec.Ports) == 0 && !isHeadless(s) && hasClusterIP(s) {
		errs = append(errs, field.Required(path.Child("ports"), ""))
	}
	errs = append(errs, validateServiceType(s, path)...)
	errs = append(errs, validateServicePorts(s, path.Child("ports"))...)
	errs = append(errs, metavalidation.ValidateLabels(s.Spec.Selector, path.Child("selector"))...)
	errs = append(errs, validateAffinity(s, path)...)
	errs = append(errs, validateClusterIPs(s, path)...)
	for i, ip := range s.Spec.ExternalIPs {
		p := path.Child("externalIPs").Index(i)
		if own := validation.IsValidIPForLegacyField(p, ip, true, nil); len(own) > 0 {
			errs = append(errs, own...)
		} else {
			errs = append(errs, reachableIP(ip, p)...)
		}
	}
	errs = append(errs,
		oneOf(path.Child("type"), s.Spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
			corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	return append(errs, validateTraffic(s, path)...)
}

func validateServiceType(s *corev1.Service, path *field.Path) (errs field.ErrorList) {
	switch s.Spec.Type {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort:
		if isHeadless(s) {
			errs = append(errs,
				field.Invalid(path.Child("clusterIPs").Index(0), corev1.ClusterIPNone, "may not be set to 'None' for "+
					string(s.Spec.Type)+" services"))
		}
	case corev1.ServiceTypeExternalName:
		const refusal = "may not be set for ExternalName services"
		if len(s.Spec.ClusterIPs) > 0 {
			errs = append(errs, field.Forbidden(path.Child("clusterIPs"), refusal))
		}
		if len(s.Spec.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(path.Child("ipFamilies"), refusal))
		}
		if s.Spec.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(path.Child("ipFamilyPolicy"), refusal))
		}
		name := strings.TrimSuffix(s.Spec.ExternalName, ".")
		if name == "" {
			return append(errs, field.Required(path.Child("externalName"), ""))
		}
		errs = append(errs, invalid(path.Child("externalName"), name, validation.IsDNS1123Subdomain(name))...)
	}
	return errs
}

// validateServicePorts validates each port, and that no two share a name, or a number or node port of one protocol.
func validateServicePorts(s *corev1.Service, path *field.Path) (errs field.ErrorList) {
	type key struct {
		protocol corev1.Protocol
		number   int32
	}
	names, numbers, nodePorts := sets.New[string](), sets.New[key](), sets.New[key]()
	for i := range s.Spec.Ports {
		p, at := &s.Spec.Ports[i], path.Index(i)
		errs = append(errs, validateServicePort(p, len(s.Spec.Ports) > 1, names, at)...)
		if p.NodePort != 0 {
			if s.Spec.Type == corev1.ServiceTypeClusterIP {
				errs = append(errs, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
			}
			k := key{p.Protocol, p.NodePort}
			if nodePorts.Has(k) {
				errs = append(errs, field.Duplicate(at.Child("nodePort"), p.NodePort))
			}
			nodePorts.Insert(k)
		}
		k := key{p.Protocol, p.Port}
		if numbers.Has(k) {
			errs = append(errs, field.Duplicate(at, shown(corev1.ServicePort{Protocol: p.Protocol, Port: p.Port})))
		}
		numbers.Insert(k)
	}
	return errs
}

func validateServicePort(p *corev1.ServicePort, needsName bool, names sets.Set[string],
	path *field.Path,
) (errs field.ErrorList) {
	switch {
	case p.Name != "":
		errs = append(errs, dnsLabel(p.Name, path.Child("name"))...)
		errs = append(errs, unique(names, p.Name, path.Child("name"))...)
	case needsName:
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	errs = append(errs, invalid(path.Child("port"), p.Port, validation.IsValidPortNum(int(p.Port)))...)
	errs = append(errs, validateProtocol(p.Protocol, path.Child("protocol"))...)
	errs = append(errs, portNumOrName(p.TargetPort, path.Child("targetPort"))...)
	if p.AppProtocol != nil {
		errs = append(errs, qualifiedName(*p.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}

func validateAffinity(s *corev1.Service, path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("sessionAffinity"), s.Spec.SessionAffinity, corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone)
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		const day = 24 * 60 * 60
		if t := *c.ClientIP.TimeoutSeconds; t <= 0 || t > day {
			errs = append(errs, field.Invalid(path.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), t,
				"must be greater than 0 and less than 86400"))
		}
	}
	return errs
}

// validateClusterIPs validates the addresses and their families, which the server has filled in where the client did
// not.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateServiceClusterIPsRelatedFields.
func validateClusterIPs(s *corev1.Service, path *field.Path) (errs field.ErrorList) {
	if !hasClusterIP(s) {
		return nil
	}
	spec, at := &s.Spec, path.Child("clusterIPs")
	switch {
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(at, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		errs = append(errs, field.Required(at, ""))
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		errs = append(errs, field.Invalid(at, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	errs = append(errs, validateFamilies(spec, path)...)
	addressErrs := validateAddresses(spec, at)
	errs = append(errs, addressErrs...)
	if len(addressErrs) == 0 && !isHeadless(s) {
		errs = append(errs, matchFamilies(spec, at)...)
	}
	return errs
}

func validateFamilies(spec *corev1.ServiceSpec, path *field.Path) (errs field.ErrorList) {
	seen := sets.New[corev1.IPFamily]()
	for i, f := range spec.IPFamilies {
		p := path.Child("ipFamilies").Index(i)
		if f != corev1.IPv4Protocol && f != corev1.IPv6Protocol {
			errs = append(errs, field.NotSupported(p, f, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
		}
		errs = append(errs, unique(seen, f, p)...)
	}
	if p := spec.IPFamilyPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("ipFamilyPolicy"), *p,
			corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack,
			corev1.IPFamilyPolicySingleStack)...)
	}
	return errs
}

func validateAddresses(spec *corev1.ServiceSpec, path *field.Path) (errs field.ErrorList) {
	for i, ip := range spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(spec.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(path, spec.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, nil)...)
	}
	if len(spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(path, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	return errs
}

func matchFamilies(spec *corev1.ServiceSpec, path *field.Path) (errs field.ErrorList) {
	if len(spec.ClusterIPs) == 2 && familyOf(spec.ClusterIPs[0]) == familyOf(spec.ClusterIPs[1]) {
		errs = append(errs, field.Invalid(path, spec.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	for i, ip := range spec.ClusterIPs {
		if i < len(spec.IPFamilies) && familyOf(ip) != spec.IPFamilies[i] {
			errs = append(errs, field.Invalid(path.Index(i), ip,
				fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", spec.IPFamilies[i], i)))
		}
	}
	return errs
}

func familyOf(ip string) corev1.IPFamily {
	if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// validateTraffic validates the policies, and that the fields of load balancers are set only on these.
func validateTraffic(s *corev1.Service, path *field.Path) (errs field.ErrorList) {
	spec := &s.Spec
	isBalancer := spec.Type == corev1.ServiceTypeLoadBalancer
	if len(spec.LoadBalancerSourceRanges) > 0 && !isBalancer {
		errs = append(errs,
			field.Forbidden(path.Child("LoadBalancerSourceRanges"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec.AllocateLoadBalancerNodePorts != nil && !isBalancer {
		errs = append(errs, field.Forbidden(path.Child("allocateLoadBalancerNodePorts"),
			"may only be used when `type` is 'LoadBalancer'"))
	}
	if spec.LoadBalancerClass != nil && !isBalancer {
		errs = append(errs,
			field.Forbidden(path.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	external := path.Child("externalTrafficPolicy")
	if reachableFromOutside(s) {
		errs = append(errs, oneOf(external, spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster,
			corev1.ServiceExternalTrafficPolicyLocal)...)
	} else if spec.ExternalTrafficPolicy != "" {
		errs = append(errs,
			field.Invalid(external, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if spec.HealthCheckNodePort != 0 && !hasHealthPort(s) {
		errs = append(errs, field.Invalid(path.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if p := spec.InternalTrafficPolicy; p != nil {
		errs = append(errs, oneOf(path.Child("internalTrafficPolicy"), *p, corev1.ServiceInternalTrafficPolicyCluster,
			corev1.ServiceInternalTrafficPolicyLocal)...)
	}
	if p := spec.TrafficDistribution; p != nil {
		errs = append(errs, oneOf(path.Child("trafficDistribution"), *p, corev1.ServiceTrafficDistributionPreferClose,
			corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)...)
	}
	return errs
}

// validateServiceUpdate checks that a Service keeps its first address and family as long as it has any.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validateUpgradeDowngradeClusterIPs,
// validateUpgradeDowngradeIPFamilies.
func validateServiceUpdate(s, old *corev1.Service) field.ErrorList {
	if !hasClusterIP(s) || !hasClusterIP(old) || (isHeadless(s) && isHeadless(old)) {
		return nil
	}
	path := field.NewPath("spec")
	now, was := &s.Spec, &old.Spec
	errs := keepsFirst(now.ClusterIPs, was.ClusterIPs, "clusterIP", path.Child("clusterIPs"))
	if isHeadless(s) == isHeadless(old) {
		errs = append(errs, keepsFirst(now.IPFamilies, was.IPFamilies, "ipFamily", path.Child("ipFamilies"))...)
	}
	if len(now.ClusterIPs) == 1 && len(was.ClusterIPs) == 2 &&
		ptr.Deref(now.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack {
		errs = append(errs, field.Invalid(path.Child("ipFamilyPolicy"), now.IPFamilyPolicy,
			"must be set to 'SingleStack' when releasing the secondary clusterIP"))
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && now.Type == was.Type &&
		!ptr.Equal(now.LoadBalancerClass, was.LoadBalancerClass) {
		errs = append(errs,
			field.Invalid(path.Child("loadBalancerClass"), now.LoadBalancerClass, "may not change once set"))
	}
	return errs
}

// keepsFirst checks that a list only grows or shrinks at its end.
func keepsFirst[T comparable](now, was []T, name string, path *field.Path) field.ErrorList {
	shared := min(len(now), len(was))
	switch {
	case len(now) == 0 && len(was) > 0:
		return field.ErrorList{field.Invalid(path.Index(0), now, "primary "+name+" can not be unset")}
	case slices.Equal(now[:shared], was[:shared]):
		return nil
	}
	changed := 0
	for now[changed] == was[changed] {
		changed++
	}
	return field.ErrorList{field.Invalid(path.Index(changed), now, "may not change once set")}
}
