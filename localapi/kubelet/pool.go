package kubelet

import (
	"fmt"
	"net/netip"
)

// pool hands out the addresses of one range, each to one holder at a time. It goes round the range, so that a released
// address is reused as late as possible: clients may still remember its last holder.
//
// Concurrency: not safe; the owner holds its lock.
type pool struct {
	prefix netip.Prefix
	last   netip.Addr // the address handed out last
	taken  map[netip.Addr]bool
}

func newPool(cidr string) (*pool, error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("pod range %q: %w", cidr, err)
	}
	if prefix.Bits() > prefix.Addr().BitLen()-2 {
		return nil, fmt.Errorf("pod range %q has no room for a pod", cidr)
	}
	prefix = prefix.Masked()
	return &pool{prefix: prefix, last: prefix.Addr(), taken: make(map[netip.Addr]bool)}, nil
}

// take returns a free address. It never returns the first address of the range, which is that of the network itself,
// nor the last address of an IPv4 range, which is the broadcast address.
func (p *pool) take() (netip.Addr, error) {
	start := p.after(p.last)
	for a := start; ; {
		if !p.taken[a] {
			p.taken[a], p.last = true, a
			return a, nil
		}
		if a = p.after(a); a == start {
			return netip.Addr{}, fmt.Errorf("no free address in %s", p.prefix)
		}
	}
}

// after returns the address after a, and the first one after the last.
func (p *pool) after(a netip.Addr) netip.Addr {
	next := a.Next()
	if !p.prefix.Contains(next) || (next.Is4() && !p.prefix.Contains(next.Next())) {
		return p.prefix.Addr().Next()
	}
	return next
}

// reserve marks an address that a pod already has. It does nothing for an address outside the range.
func (p *pool) reserve(a netip.Addr) bool {
	if !p.prefix.Contains(a) {
		return false
	}
	p.taken[a] = true
	return true
}

// release gives an address back.
func (p *pool) release(a netip.Addr) { delete(p.taken, a) }
