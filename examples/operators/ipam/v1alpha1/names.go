package v1alpha1

import (
	"net/netip"
	"strings"
)

// normalize converts an address or a range so that it can be part of a name.
//
// Source: whereabouts v0.0.4, which cannot have ":" or "/" in names, nor a dash at their end.
func normalize(text string) string {
	if strings.HasSuffix(text, ":") {
		text += "0"
	}
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}

// NormalizeRange returns a range as it appears in the name of its pool.
func NormalizeRange(cidr string) string {
	address, length, found := strings.Cut(cidr, "/")
	if !found {
		return normalize(cidr)
	}
	return normalize(address) + "-" + length
}

// PoolName returns the name of the pool of a range, for all nodes or for one. The network may have no name.
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

// NetworkAndNode returns the network and the node of a pool of that range, according to its name. Both are empty if the
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

// ReservationName returns the name of the reservation of an address.
func ReservationName(network string, ip netip.Addr) string {
	if network == "" {
		return normalize(ip.String())
	}
	return network + "-" + normalize(ip.String())
}

// ReservationFor reports whether a reservation of that name is the one of ip in a network. An empty network means that
// the network is not known. The reservation may then belong to any network, unless the whole name can be read as
// another address. So "2001-db8--1" is taken for db8::1 in a network called 2001 only if that network is given.
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
