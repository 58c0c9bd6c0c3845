package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func networkPolicy() *resource.Definition {
	d := namespaced[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](networkingv1.SchemeGroupVersion,
		"networkpolicies", "netpol")
	withGeneration(d, "Spec")
	d.Default = mutate(defaultPolicy)
	d.Validate = check(validatePolicy)
	d.Warnings = func(obj, _ runtime.Object) []string { return policyWarnings(obj.(*networkingv1.NetworkPolicy)) }
	printed(d, func(p *networkingv1.NetworkPolicy, now time.Time) []cell {
		return []cell{
			nameColumn(p.Name),
			column("Pod-Selector", "string", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"],
				metav1.FormatLabelSelector(&p.Spec.PodSelector)),
			ageColumn(p.CreationTimestamp, now),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/v1/defaults.go SetDefaults_NetworkPolicy.
func defaultPolicy(p *networkingv1.NetworkPolicy) {
	for _, rule := range policyRules(p) {
		for i := range rule.ports {
			setDefaultPtr(&rule.ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	if len(p.Spec.PolicyTypes) > 0 {
		return
	}
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(p.Spec.Egress) > 0 {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
}

// policyRule is what the rules of both directions share.
type policyRule struct {
	ports    []networkingv1.NetworkPolicyPort
	peers    []networkingv1.NetworkPolicyPeer
	portPath *field.Path
	peerPath *field.Path
}

// policyRules returns the rules of a policy: first those for ingress, then those for egress.
func policyRules(p *networkingv1.NetworkPolicy) []policyRule {
	var rules []policyRule
	path := field.NewPath("spec")
	for i, r := range p.Spec.Ingress {
		at := path.Child("ingress").Index(i)
		rules = append(rules, policyRule{r.Ports, r.From, at.Child("ports"), at.Child("from")})
	}
	for i, r := range p.Spec.Egress {
		at := path.Child("egress").Index(i)
		rules = append(rules, policyRule{r.Ports, r.To, at.Child("ports"), at.Child("to")})
	}
	return rules
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go ValidateNetworkPolicySpec.
func validatePolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	path := field.NewPath("spec")
	errs := labelSelector(&p.Spec.PodSelector, path.Child("podSelector"))
	for _, rule := range policyRules(p) {
		for i := range rule.ports {
			errs = append(errs, validatePolicyPort(&rule.ports[i], rule.portPath.Index(i))...)
		}
		for i := range rule.peers {
			errs = append(errs, validatePolicyPeer(&rule.peers[i], rule.peerPath.Index(i))...)
		}
	}
	directions := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	types := path.Child("policyTypes")
	if len(p.Spec.PolicyTypes) > len(directions) {
		return append(errs, field.Invalid(types, p.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range p.Spec.PolicyTypes {
		errs = append(errs, supported(types.Index(i), t, directions...)...)
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go ValidateNetworkPolicyPort.
func validatePolicyPort(p *networkingv1.NetworkPolicyPort, path *field.Path) (errs field.ErrorList) {
	if p.Protocol != nil {
		errs = append(errs, supported(path.Child("protocol"), *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP,
			corev1.ProtocolSCTP)...)
	}
	end := path.Child("endPort")
	switch {
	case p.Port == nil && p.EndPort != nil:
		return append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is not specified"))
	case p.Port == nil:
		return errs
	case p.Port.Type == intstr.String:
		if p.EndPort != nil {
			errs = append(errs, field.Invalid(end, *p.EndPort, "may not be specified when `port` is non-numeric"))
		}
		return append(errs, invalid(path.Child("port"), p.Port.StrVal, validation.IsValidPortName(p.Port.StrVal))...)
	}
	errs = append(errs, invalid(path.Child("port"), p.Port.IntVal, validation.IsValidPortNum(int(p.Port.IntVal)))...)
	if p.EndPort == nil {
		return errs
	}
	if *p.EndPort < p.Port.IntVal {
		errs = append(errs, field.Invalid(end, *p.EndPort, "must be greater than or equal to `port`"))
	}
	return append(errs, invalid(end, *p.EndPort, validation.IsValidPortNum(int(*p.EndPort)))...)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go ValidateNetworkPolicyPeer.
func validatePolicyPeer(p *networkingv1.NetworkPolicyPeer, path *field.Path) (errs field.ErrorList) {
	selectors := 0
	for _, s := range []struct {
		name string
		*metav1.LabelSelector
	}{{"podSelector", p.PodSelector}, {"namespaceSelector", p.NamespaceSelector}} {
		if s.LabelSelector != nil {
			selectors++
			errs = append(errs, labelSelector(s.LabelSelector, path.Child(s.name))...)
		}
	}
	switch {
	case p.IPBlock == nil && selectors == 0:
		return append(errs, field.Required(path, "must specify a peer"))
	case p.IPBlock == nil:
		return errs
	}
	errs = append(errs, validateIPBlock(p.IPBlock, path.Child("ipBlock"))...)
	if selectors > 0 {
		errs = append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/networking/validation/validation.go ValidateIPBlock.
func validateIPBlock(b *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	errs := validation.IsValidCIDRForLegacyField(path.Child("cidr"), b.CIDR, true, nil)
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return errs
	}
	for i, except := range b.Except {
		at := path.Child("except").Index(i)
		errs = append(errs, validation.IsValidCIDRForLegacyField(at, except, true, nil)...)
		_, hole, err := netutils.ParseCIDRSloppy(except)
		if err != nil {
			continue
		}
		size, _ := whole.Mask.Size()
		holeSize, _ := hole.Mask.Size()
		if !whole.Contains(hole.IP) || size >= holeSize {
			errs = append(errs, field.Invalid(at, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/registry/networking/networkpolicy/strategy.go networkPolicyWarnings.
func policyWarnings(p *networkingv1.NetworkPolicy) []string {
	var warnings []string
	for _, rule := range policyRules(p) {
		for i, peer := range rule.peers {
			if peer.IPBlock == nil {
				continue
			}
			path := rule.peerPath.Index(i).Child("ipBlock")
			warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("cidr"), peer.IPBlock.CIDR)...)
			for k, except := range peer.IPBlock.Except {
				warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("except").Index(k), except)...)
			}
		}
	}
	return warnings
}
