package controller

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// allocation is an entry of a pool, with its key and its reference parsed.
type allocation struct {
	v1alpha1.IPAllocation
	key string
	// ip is invalid if the key is not an address of the range.
	ip netip.Addr
	// pod is the Pod that the entry refers to. named means that the reference could be parsed.
	pod   client.ObjectKey
	named bool
}

// allocationsOf parses the entries of a pool. They are sorted by address; those without one come last.
func allocationsOf(pool *v1alpha1.IPPool, cidr netip.Prefix) []allocation {
	all := make([]allocation, 0, len(pool.Spec.Allocations))
	for key, a := range pool.Spec.Allocations {
		entry := allocation{IPAllocation: a, key: key}
		entry.ip, _ = ranges.At(cidr, key)
		entry.pod, entry.named = parsePodRef(a.PodRef)
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b allocation) int {
		if a.ip.IsValid() != b.ip.IsValid() {
			return b.ip.Compare(a.ip)
		}
		return cmp.Or(a.ip.Compare(b.ip), cmp.Compare(a.key, b.key))
	})
	return all
}

// survey is the result of examining the allocations of a pool.
type survey struct {
	// orphans may be released. unlisted may be released only if their Pod still lacks them after a while.
	orphans, unlisted []allocation
	pending           int
	// unreadable holds the Pods whose network status is malformed.
	unreadable []string
	// reserved holds the reservations of the orphans, by their keys.
	reserved map[string][]*v1alpha1.OverlappingRangeIPReservation
}

// examine examines each allocation once. podOf returns nil for a Pod that does not exist.
func (o Options) examine(all []allocation, podOf func(client.ObjectKey) *corev1.Pod) (s survey) {
	for _, a := range all {
		v := orphaned // no Pod refers to it
		if a.named {
			v = o.judge(podOf(a.pod), a.ip, a.IfName)
		}
		switch v {
		case orphaned:
			s.orphans = append(s.orphans, a)
		case unlisted:
			s.unlisted = append(s.unlisted, a)
		case waiting:
			s.pending++
		case unreadable:
			s.unreadable = append(s.unreadable, a.PodRef)
		}
	}
	s.unreadable = slices.Compact(slices.Sorted(slices.Values(s.unreadable)))
	return s
}

// fill computes the numbers of a pool's status from its allocations. reserved counts reservations.
func fill(status *v1alpha1.IPPoolStatus, cidr netip.Prefix, all []allocation, reserved int) {
	first, last, total := ranges.Usable(cidr)
	status.FirstIP, status.LastIP, status.TotalIPs = first.String(), last.String(), total
	status.UsedIPs = int32(len(all))
	status.FreeIPs = max(0, total-status.UsedIPs)
	status.OverlappingReservations = int32(reserved)
	status.AllocatedIPs = nil
	for _, a := range all {
		ip := a.key
		if a.ip.IsValid() {
			ip = a.ip.String()
		}
		status.AllocatedIPs = append(status.AllocatedIPs,
			v1alpha1.AllocatedIP{IP: ip, PodRef: a.PodRef, IfName: a.IfName})
	}
}
