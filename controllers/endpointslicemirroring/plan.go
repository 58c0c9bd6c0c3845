package endpointslicemirroring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
)

// observed is what the controller sees of one key. The objects are shared with the caches: read only.
type observed struct {
	// endpoints and service are nil when there is none of that name.
	endpoints *corev1.Endpoints
	service   *corev1.Service
	// slices are those that this controller manages for the key and that are not being deleted.
	slices []*discoveryv1.EndpointSlice
	// maxPerSubset is the limit of addresses of a subset. Invariant: between 1 and maxPerSlice.
	maxPerSubset int
}

// changes is everything that brings the slices up to date.
type changes struct {
	sliceset.Batch
	// invalid is how many addresses are not IP addresses.
	invalid int
	// skipped is how many addresses were left out: those that are invalid, and those that exceed the limit.
	skipped int
}

// planner makes the plan for Endpoints that are mirrored.
type planner struct {
	observed
	// groups has what is wanted and what exists, in the order of the subsets, then of the slices' names.
	groups []*group
	out    changes
}

// group is the endpoints of one set of ports in one address family: the contents of one slice. It may have no
// endpoints.
type group struct {
	kind     discoveryv1.AddressType
	ports    []discoveryv1.EndpointPort
	key      string // the [sliceset.PortsKey] of ports
	wanted   sliceset.Wanted
	existing []*discoveryv1.EndpointSlice
}

// plan decides what to do about the slices of a key. If the Endpoints are not mirrored, all slices are deleted.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler.go, reconcile and finalize
func plan(o observed) changes {
	p := &planner{observed: o}
	p.slices = slices.SortedFunc(slices.Values(o.slices),
		func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	if !mirrored(o.endpoints, o.service) {
		p.out.Remove = p.slices
		return p.out
	}
	for _, subset := range endpoints.RepackSubsets(o.endpoints.Subsets) {
		p.addSubset(&subset)
	}
	for _, slice := range p.slices {
		g := p.group(slice.AddressType, sliceset.PortsKey(slice.Ports), slice.Ports)
		g.existing = append(g.existing, slice)
	}
	for _, kind := range []discoveryv1.AddressType{
		discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN,
	} {
		p.out.Add(p.planFamily(kind))
	}
	return p.out
}

// addSubset adds a subset's endpoints to the groups of its ports, up to the limit. Those that are ready come first.
func (p *planner) addSubset(subset *corev1.EndpointSubset) {
	ports, added := portsOf(subset.Ports), 0
	key := sliceset.PortsKey(ports)
	add := func(addresses []corev1.EndpointAddress, ready bool) {
		for i := range addresses {
			if added == p.maxPerSubset {
				return
			}
			endpoint, kind, ok := endpointOf(&addresses[i], ready)
			if !ok {
				p.out.invalid++
				continue
			}
			p.group(kind, key, ports).wanted.Add(endpoint)
			added++
		}
	}
	add(subset.Addresses, true)
	add(subset.NotReadyAddresses, false)
	p.out.skipped += len(subset.Addresses) + len(subset.NotReadyAddresses) - added
}

// group returns the group of a family and a set of ports. key is their [sliceset.PortsKey].
func (p *planner) group(kind discoveryv1.AddressType, key string, ports []discoveryv1.EndpointPort) *group {
	for _, g := range p.groups {
		if g.kind == kind && g.key == key {
			return g
		}
	}
	g := &group{kind: kind, ports: ports, key: key}
	p.groups = append(p.groups, g)
	return g
}

// planFamily decides what to do about the slices of one address family.
func (p *planner) planFamily(kind discoveryv1.AddressType) sliceset.Batch {
	var out sliceset.Batch
	for _, g := range p.groups {
		if g.kind == kind {
			out.Add(p.planGroup(g))
		}
	}
	out.Recycle(func(*discoveryv1.EndpointSlice) bool { return true }, rewritten)
	if p.endpoints.DeletionTimestamp != nil {
		out.Create = nil // the garbage collector is deleting the slices
	}
	return out
}

// planGroup decides what to do about the slices of one group: the first is kept, and written if it differs.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler.go, reconcileByPortMapping
func (p *planner) planGroup(g *group) sliceset.Batch {
	if g.wanted.Len() == 0 {
		return sliceset.Batch{Remove: g.existing}
	}
	wanted := newSlice(p.endpoints, g)
	if len(g.existing) == 0 {
		wanted.Endpoints = g.wanted.Fill(nil, maxPerSlice)
		return sliceset.Batch{Create: []*discoveryv1.EndpointSlice{wanted}}
	}
	out := sliceset.Batch{Remove: g.existing[1:]}
	if current := g.existing[0]; !describes(current, p.endpoints, wanted) || !g.wanted.Equals(current.Endpoints) {
		wanted.Endpoints = g.wanted.Fill(nil, maxPerSlice)
		out.Update = []*discoveryv1.EndpointSlice{rewritten(current, wanted)}
	}
	return out
}
