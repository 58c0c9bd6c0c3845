package controller

import (
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// judgeNetworks tells by the annotation of a running Pod whether it has ip on the interface ifName; an empty name is any. Without an
// annotation it is in use: not every Pod has one. An empty list says that the Pod has no further networks. The cluster's own network is
// not ours.
func judgeNetworks(annotation string, ip netip.Addr, ifName string) verdict {
	if strings.TrimSpace(annotation) == "" {
		return inUse
	}
	var networks []v1alpha1.NetworkStatus
	if err := json.Unmarshal([]byte(annotation), &networks); err != nil {
		return unreadable
	}
	v := unlisted
	for _, n := range networks {
		if n.Default || (ifName != "" && n.Interface != "" && n.Interface != ifName) {
			continue
		}
		for _, text := range n.IPs {
			switch has, err := parseIP(text); {
			case err != nil:
				v = unreadable // It might be the one.
			case has == ip:
				return inUse
			}
		}
	}
	return v
}

// parseIP reads an address, which may have a prefix length.
func parseIP(text string) (netip.Addr, error) {
	if address, _, found := strings.Cut(text, "/"); found {
		text = address
	}
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err
}
