package v1alpha1

import (
	"net/netip"
	"strings"
)

// normalize writes an address or a range so that it can be part of a name.
//
// Source: whereabouts v0.0.4, which cannot have ":" or "/" in names, nor a dash at their end.
func normalize(text string) string {
	if strings.HasSuffix(text, ":") {
		text += "0"
	}
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}

// NormalizeRange is how a range stands in the name of its pool.
func NormalizeRange(cidr string) string {
	address, length, found := strings.Cut(cidr, "/")
	if !found {
		return normalize(cidr)
	}
	return normalize(address) + "-" + length
}

// PoolName is the name of the pool of a range: of all nodes, or of one. The network may have no name.
func PoolName(network, cidr, node string) string {
	name := NormalizeRange(cidr)
	if network != "" {
		name = network + "-" + name
	}
	if node != "" {
		name += "-" + node
	}
	return name
}

// NetworkAndNode reads the name of a pool of that range: which network it belongs to, and which node. Both are empty when the
// name does not tell.
func NetworkAndNode(pool, cidr string) (network, node string) {
	middle := NormalizeRange(cidr)
	for i := strings.Index(pool, middle); i >= 0; {
		before, after := pool[:i], pool[i+len(middle):]
		if (before == "" || strings.HasSuffix(before, "-")) && (after == "" || strings.HasPrefix(after, "-")) {
			return strings.TrimSuffix(before, "-"), strings.TrimPrefix(after, "-")
		}
		next := strings.Index(pool[i+1:], middle)
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return "", ""
}

// ReservationName is the name of the reservation of an address.
func ReservationName(network string, ip netip.Addr) string {
	if network == "" {
		return normalize(ip.String())
	}
	return network + "-" + normalize(ip.String())
}

// ReservationFor says whether a reservation of that name is the one of ip in a network. A network without a name is one that is not known:
// then the reservation may be of any, unless the name as a whole reads as another address. So "2001-db8--1" is not taken for db8::1 in
// a network called 2001, but by who knows that network.
func ReservationFor(name, network string, ip netip.Addr) bool {
	if name == ReservationName(network, ip) {
		return true
	}
	for _, text := range []string{name, strings.ReplaceAll(name, "-", ":")} {
		if whole, err := netip.ParseAddr(text); err == nil {
			return whole == ip
		}
	}
	return network == "" && strings.HasSuffix(name, "-"+normalize(ip.String()))
}
