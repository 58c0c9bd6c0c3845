package endpointslice

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
)

// batch is what to do with the slices of one address family.
type batch struct {
	sliceset.Batch
	// keep has slices of the cache that are not written.
	keep []*discoveryv1.EndpointSlice
}

// group is the endpoints of one set of ports in one address family.
type group struct {
	ports    []discoveryv1.EndpointPort
	wanted   sliceset.Wanted
	existing []*discoveryv1.EndpointSlice
}

// box is an existing slice and the endpoints that it will have.
type box struct {
	slice     *discoveryv1.EndpointSlice
	endpoints []discoveryv1.Endpoint
	// changed means that the slice is written anyway, so adding to it costs nothing.
	changed bool
}

// pack finds a place for every wanted endpoint, with as few writes as the order of the steps allows:
//
//  1. Endpoints that are wanted stay in their slices. Others are removed, and so is a slice that becomes empty.
//  2. New endpoints fill up the slices that are written anyway, the fullest first.
//  3. The rest goes into one untouched slice, the fullest that has room for all of it, or else into new slices.
//
// Endpoints never move from one slice to another: few writes matter more than full slices.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByPortMapping and utils.go, getSliceToFill
func (p *planner) pack(g *group, kind discoveryv1.AddressType) batch {
	var out batch
	boxes := p.keepWanted(g, &out)
	for _, b := range fullestFirst(boxes) {
		if b.changed {
			b.endpoints = g.wanted.Fill(b.endpoints, p.maxEndpoints)
		}
	}
	for g.wanted.Len() > 0 {
		if b := p.roomFor(boxes, g.wanted.Len()); b != nil {
			b.endpoints, b.changed = g.wanted.Fill(b.endpoints, p.maxEndpoints), true
			continue
		}
		slice := p.newSlice(kind, g.ports)
		slice.Endpoints = g.wanted.Fill(slice.Endpoints, p.maxEndpoints)
		out.Create = append(out.Create, slice)
	}
	for _, b := range boxes {
		if b.changed {
			out.Update = append(out.Update, p.rewritten(b.slice, b.slice.Ports, b.endpoints))
		} else {
			out.keep = append(out.keep, b.slice)
		}
	}
	return out
}

// keepWanted carries out the first step and returns the slices that stay.
func (p *planner) keepWanted(g *group, out *batch) []*box {
	var boxes []*box
	for _, slice := range g.existing {
		b := &box{slice: slice, changed: !labelsUpToDate(slice, p.service)}
		edited := false
		for i := range slice.Endpoints {
			wanted, found := g.wanted.Take(&slice.Endpoints[i])
			if !found {
				edited = true
				continue
			}
			b.endpoints = append(b.endpoints, wanted)
			edited = edited || !sliceset.SameBeyondKey(&wanted, &slice.Endpoints[i])
		}
		if edited && len(b.endpoints) == 0 {
			out.Remove = append(out.Remove, slice)
			continue
		}
		b.changed = b.changed || edited
		boxes = append(boxes, b)
	}
	return boxes
}

func fullestFirst(boxes []*box) []*box {
	sorted := slices.Clone(boxes)
	slices.SortStableFunc(sorted, func(a, b *box) int { return cmp.Compare(len(b.endpoints), len(a.endpoints)) })
	return sorted
}

// roomFor returns the fullest untouched slice that has room for n more endpoints, or nil if there is none. It also
// returns nil if n endpoints fill a new slice.
func (p *planner) roomFor(boxes []*box, n int) *box {
	if n >= p.maxEndpoints {
		return nil
	}
	var best *box
	for _, b := range boxes {
		if !b.changed && len(b.endpoints)+n <= p.maxEndpoints &&
			(best == nil || len(b.endpoints) > len(best.endpoints)) {
			best = b
		}
	}
	return best
}
