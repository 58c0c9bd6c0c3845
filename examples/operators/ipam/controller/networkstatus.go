package controller

import (
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
)

// judgeNetworks decides by the annotation of a running Pod whether the Pod has ip on the interface ifName; an empty
// name means any interface. Without an annotation the address is in use, because not every Pod has one. An empty list
// means that the Pod has no further networks. The entry of the cluster's own network is ignored.
func judgeNetworks(annotation string, ip netip.Addr, ifName string) verdict {
	if strings.TrimSpace(annotation) == "" {
		return inUse
	}
	var networks []multus.NetworkStatus
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
				v = unreadable // it might be the one
			case has == ip:
				return inUse
			}
		}
	}
	return v
}

// parseIP parses an address, which may have a prefix length.
func parseIP(text string) (netip.Addr, error) {
	if address, _, found := strings.Cut(text, "/"); found {
		text = address
	}
	ip, err := netip.ParseAddr(text)
	return ip.Unmap(), err
}
