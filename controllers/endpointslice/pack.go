package endpointslice

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// batch is what is to become of the slices of one address family. Slices in create, update and remove are the batch's
// own to change; those in keep are the cache's.
type batch struct {
	create []*discoveryv1.EndpointSlice
	// update are copies of what the cache holds, changed.
	update []*discoveryv1.EndpointSlice
	remove []*discoveryv1.EndpointSlice
	keep   []*discoveryv1.EndpointSlice
}

func (b *batch) add(o batch) {
	b.create = append(b.create, o.create...)
	b.update = append(b.update, o.update...)
	b.remove = append(b.remove, o.remove...)
	b.keep = append(b.keep, o.keep...)
}

// wantedSet are endpoints that have no place yet, in the order in which they were added.
type wantedSet struct {
	order []endpointKey
	// left has those of order that have not been taken.
	left map[endpointKey]discoveryv1.Endpoint
}

func (w *wantedSet) add(e discoveryv1.Endpoint) {
	if w.left == nil {
		w.left = make(map[endpointKey]discoveryv1.Endpoint)
	}
	key := keyOf(&e)
	if _, found := w.left[key]; !found {
		w.order = append(w.order, key)
	}
	w.left[key] = e
}

// take returns the wanted endpoint of that key, if it has no place yet. It then has.
func (w *wantedSet) take(key endpointKey) (discoveryv1.Endpoint, bool) {
	e, found := w.left[key]
	delete(w.left, key)
	return e, found
}

// fill moves endpoints into list until it has limit.
func (w *wantedSet) fill(list []discoveryv1.Endpoint, limit int) []discoveryv1.Endpoint {
	for len(list) < limit && len(w.order) > 0 {
		if e, found := w.take(w.order[0]); found {
			list = append(list, e)
		}
		w.order = w.order[1:]
	}
	return list
}

// group is the endpoints of one set of ports in one address family.
type group struct {
	ports    []discoveryv1.EndpointPort
	wanted   wantedSet
	existing []*discoveryv1.EndpointSlice
}

// box is an existing slice and what is to be in it.
type box struct {
	slice     *discoveryv1.EndpointSlice
	endpoints []discoveryv1.Endpoint
	// changed: the slice is written, so adding to it costs nothing.
	changed bool
}

// pack finds a place for every wanted endpoint, with as few writes as the order of the steps allows:
//
//  1. An endpoint that is wanted stays in its slice. One that is not leaves; a slice with none left is removed.
//  2. What is new fills up the slices that are written anyway, the fullest first.
//  3. What is left after that goes into one untouched slice, the one it leaves the least room in, if it fits there
//     whole, or else into new slices.
//
// Endpoints are never moved from slice to slice: that every slice is full is worth less than that few change.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByPortMapping and utils.go, getSliceToFill
func (p *planner) pack(g *group, kind discoveryv1.AddressType) batch {
	var out batch
	boxes := p.keepWanted(g, &out)
	for _, b := range fullestFirst(boxes) {
		if b.changed {
			b.endpoints = g.wanted.fill(b.endpoints, p.maxEndpoints)
		}
	}
	for len(g.wanted.left) > 0 {
		if b := p.roomFor(boxes, len(g.wanted.left)); b != nil {
			b.endpoints, b.changed = g.wanted.fill(b.endpoints, p.maxEndpoints), true
			continue
		}
		slice := p.newSlice(kind, g.ports)
		slice.Endpoints = g.wanted.fill(slice.Endpoints, p.maxEndpoints)
		out.create = append(out.create, slice)
	}
	for _, b := range boxes {
		if b.changed {
			out.update = append(out.update, p.rewritten(b.slice, b.slice.Ports, b.endpoints))
		} else {
			out.keep = append(out.keep, b.slice)
		}
	}
	return out
}

// keepWanted is the first step: it returns the slices that stay.
func (p *planner) keepWanted(g *group, out *batch) []*box {
	var boxes []*box
	for _, slice := range g.existing {
		b := &box{slice: slice, changed: !labelsUpToDate(slice, p.service)}
		edited := false
		for i := range slice.Endpoints {
			wanted, found := g.wanted.take(keyOf(&slice.Endpoints[i]))
			if !found {
				edited = true
				continue
			}
			b.endpoints = append(b.endpoints, wanted)
			edited = edited || !sameBeyondKey(&wanted, &slice.Endpoints[i])
		}
		if edited && len(b.endpoints) == 0 {
			out.remove = append(out.remove, slice)
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

// roomFor returns the untouched slice that n more endpoints fill best, or nil if they fit into none. As many as fill a
// slice of their own get one.
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
