package ranges

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// The ranges are the defaults of kubeadm (addresses) and kube-apiserver (ports).
var (
	ipRanges = map[string]netip.Prefix{
		"IPv4": netip.MustParsePrefix("10.96.0.0/12"),
		"IPv6": netip.MustParsePrefix("fd00:10:96::/112"),
	}
	firstPort, lastPort int32 = 30000, 32767
)

// CIDRs returns the ranges of addresses, the preferred family first.
func CIDRs() []string { return []string{ipRanges["IPv4"].String(), ipRanges["IPv6"].String()} }

// reserved is the number of addresses at the start of a range that are given only on request: that of the network
// itself, and the low ones that clusters give to the API server and DNS.
const reserved = 16

var errTaken = errors.New("provided IP is already allocated")

// Allocator is a [resource.Allocator]. It returns the lowest free value, so that runs are repeatable.
type Allocator struct {
	mu    sync.Mutex
	ips   map[netip.Addr]bool
	ports map[string]map[int32]bool
	next  map[string]netip.Addr // no address of the range below it, from the reserved part on, is free
}

var _ resource.Allocator = (*Allocator)(nil)

// New returns an allocator with everything free.
func New() *Allocator {
	return &Allocator{ips: map[netip.Addr]bool{}, ports: map[string]map[int32]bool{}, next: map[string]netip.Addr{}}
}

// IP implements [resource.Allocator].
func (a *Allocator) IP(ipRange, want string) (string, error) {
	prefix, ok := ipRanges[ipRange]
	if !ok {
		return "", fmt.Errorf("unknown IP range %q", ipRange)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if want == "" {
		return a.nextIPLocked(ipRange, prefix)
	}
	ip, err := netip.ParseAddr(want)
	if err != nil {
		return "", fmt.Errorf("parse IP: %w", err)
	}
	if !prefix.Contains(ip) || ip == prefix.Addr() {
		return "", errors.New("the provided network does not match the current range")
	}
	if a.ips[ip] {
		return "", errTaken
	}
	a.ips[ip] = true
	return ip.String(), nil
}

func (a *Allocator) nextIPLocked(name string, prefix netip.Prefix) (string, error) {
	ip, ok := a.next[name]
	if !ok {
		ip = prefix.Addr()
		for range reserved {
			ip = ip.Next()
		}
	}
	for ; prefix.Contains(ip); ip = ip.Next() {
		if !a.ips[ip] {
			a.ips[ip] = true
			a.next[name] = ip.Next()
			return ip.String(), nil
		}
	}
	return "", errors.New("range is full")
}

// ReleaseIP implements [resource.Allocator].
func (a *Allocator) ReleaseIP(ip string) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ips, addr)
	for name, prefix := range ipRanges {
		if next, ok := a.next[name]; ok && prefix.Contains(addr) && addr.Less(next) && !isReserved(prefix, addr) {
			a.next[name] = addr
		}
	}
}

func isReserved(prefix netip.Prefix, ip netip.Addr) bool {
	low := prefix.Addr()
	for range reserved {
		if low == ip {
			return true
		}
		low = low.Next()
	}
	return false
}

// Port implements [resource.Allocator].
func (a *Allocator) Port(portRange string, want int32) (int32, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.ports[portRange]
	if taken == nil {
		taken = map[int32]bool{}
		a.ports[portRange] = taken
	}
	if want != 0 {
		switch {
		case want < firstPort || want > lastPort:
			return 0, fmt.Errorf("provided port is not in the valid range. The range of valid ports is %d-%d",
				firstPort, lastPort)
		case taken[want]:
			return 0, errors.New("provided port is already allocated")
		}
		taken[want] = true
		return want, nil
	}
	for port := firstPort; port <= lastPort; port++ {
		if !taken[port] {
			taken[port] = true
			return port, nil
		}
	}
	return 0, errors.New("range is full")
}

// ReleasePort implements [resource.Allocator].
func (a *Allocator) ReleasePort(portRange string, port int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ports[portRange], port)
}
