package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func networkPolicy() *resource.Definition {
	d := namespaced[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](networkingv1.SchemeGroupVersion,
		"networkpolicies", "netpol")
	withGeneration(d, "Spec")
	d.Default = mutate(defaultPolicy)
	d.Validate = rules(validatePolicy)
	d.Warnings = func(obj, _ runtime.Object) []string { return policyWarnings(obj.(*networkingv1.NetworkPolicy)) }
	listed(d, func(p *networkingv1.NetworkPolicy) []cell {
		return []cell{
			column("Pod-Selector", "string", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"],
				metav1.FormatLabelSelector(&p.Spec.PodSelector)),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/v1/defaults.go SetDefaults_NetworkPolicy.
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
	path  string
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
	side  string // the field of the peers
}

// policyRules returns the rules of a policy: first those for ingress, then those for egress.
func policyRules(p *networkingv1.NetworkPolicy) []policyRule {
	var rules []policyRule
	for i, r := range p.Spec.Ingress {
		rules = append(rules, policyRule{fmt.Sprintf("spec.ingress[%d]", i), r.Ports, r.From, "from"})
	}
	for i, r := range p.Spec.Egress {
		rules = append(rules, policyRule{fmt.Sprintf("spec.egress[%d]", i), r.Ports, r.To, "to"})
	}
	return rules
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go ValidateNetworkPolicySpec.
func validatePolicy(f verify.Field, p *networkingv1.NetworkPolicy) {
	f.LabelSelector("spec.podSelector", &p.Spec.PodSelector)
	for _, rule := range policyRules(p) {
		verify.Each(f.Child(rule.path), "ports", rule.ports, validatePolicyPort)
		verify.Each(f.Child(rule.path), rule.side, rule.peers, validatePolicyPeer)
	}
	types := p.Spec.PolicyTypes
	if len(types) > 2 {
		f.Reject("spec.policyTypes", true, types, "may not specify more than two policyTypes")
		return
	}
	verify.Each(f, "spec.policyTypes", types, func(f verify.Field, t *networkingv1.PolicyType) {
		verify.Supported(f, "", *t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go ValidateNetworkPolicyPort.
func validatePolicyPort(f verify.Field, p *networkingv1.NetworkPolicyPort) {
	verify.SupportedPointer(f, "protocol", p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	switch end := p.EndPort; {
	case p.Port == nil:
		f.Reject("endPort", end != nil, end, "may not be specified when `port` is not specified")
	case p.Port.Type == intstr.String:
		f.Reject("endPort", end != nil, end, "may not be specified when `port` is non-numeric")
		f.Match("port", p.Port.StrVal, validation.IsValidPortName)
	default:
		f.Port("port", p.Port.IntVal)
		if end != nil {
			f.Reject("endPort", *end < p.Port.IntVal, end, "must be greater than or equal to `port`")
			f.Port("endPort", *end)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go ValidateNetworkPolicyPeer.
func validatePolicyPeer(f verify.Field, p *networkingv1.NetworkPolicyPeer) {
	selects := p.PodSelector != nil || p.NamespaceSelector != nil
	f.LabelSelector("podSelector", p.PodSelector)
	f.LabelSelector("namespaceSelector", p.NamespaceSelector)
	if p.IPBlock == nil {
		f.Require("", selects, "must specify a peer")
		return
	}
	validateIPBlock(f.Child("ipBlock"), p.IPBlock)
	f.Forbid("", selects, "may not specify both ipBlock and another peer")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/networking/validation/validation.go ValidateIPBlock.
func validateIPBlock(f verify.Field, b *networkingv1.IPBlock) {
	if b.CIDR == "" {
		f.Require("cidr", false, "")
		return
	}
	f.Add(validation.IsValidCIDRForLegacyField(f.Path("cidr"), b.CIDR, true, nil)...)
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return
	}
	verify.Each(f, "except", b.Except, func(f verify.Field, except *string) {
		f.Add(validation.IsValidCIDRForLegacyField(f.Path(""), *except, true, nil)...)
		if _, hole, err := netutils.ParseCIDRSloppy(*except); err == nil {
			size, _ := whole.Mask.Size()
			holeSize, _ := hole.Mask.Size()
			f.Reject("", !whole.Contains(hole.IP) || size >= holeSize, *except, "must be a strict subset of `cidr`")
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/registry/networking/networkpolicy/strategy.go networkPolicyWarnings.
func policyWarnings(p *networkingv1.NetworkPolicy) []string {
	var warnings []string
	for _, rule := range policyRules(p) {
		for i, peer := range rule.peers {
			if peer.IPBlock == nil {
				continue
			}
			path := field.NewPath(rule.path, rule.side).Index(i).Child("ipBlock")
			warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("cidr"), peer.IPBlock.CIDR)...)
			for k, except := range peer.IPBlock.Except {
				warnings = append(warnings, validation.GetWarningsForCIDR(path.Child("except").Index(k), except)...)
			}
		}
	}
	return warnings
}
