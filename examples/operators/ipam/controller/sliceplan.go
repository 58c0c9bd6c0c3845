package controller

import (
	"maps"
	"slices"

	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// assignment maps slices to nodes.
type assignment struct {
	// holders are the nodes, by the number of their slice.
	holders map[int]string
	// waiting are the nodes without a slice. kept counts the slices that are in use although no existing node has them.
	waiting []string
	kept    int
}

// assign gives every node a slice. A node that has one keeps it. The slice of a node that is gone is kept while its
// addresses are in use. A slice without a node whose addresses are in use goes to the node that uses them, so that a
// lost NodeSlicePool can be restored. The other nodes get the first free slices, in the order of their names.
//
// have is what the status says; nodes are sorted. used returns the slices in use and the nodes that use them, "" if a
// node is not known. It is called only if a node has lost a slice or needs one. It is called with live set if a node
// has lost one, because a slice that was given away is not taken back.
func assign(s ranges.Slices, have []v1alpha1.NodeSliceAllocation, nodes []string,
	used func(live bool) (map[int]string, error),
) (assignment, error) {
	a := assignment{holders: map[int]string{}}
	exists, served := map[string]bool{}, map[string]bool{}
	for _, node := range nodes {
		exists[node] = true
	}
	gone := []int{}
	for _, h := range have {
		i, valid := s.Parse(h.SliceRange)
		if !valid || h.NodeName == "" || a.holders[i] != "" || served[h.NodeName] {
			continue
		}
		a.holders[i], served[h.NodeName] = h.NodeName, true
		if !exists[h.NodeName] {
			gone = append(gone, i)
		}
	}
	if len(gone) == 0 && len(served) == len(nodes) {
		return a, nil
	}
	users, err := used(len(gone) > 0)
	if err != nil {
		return assignment{}, err
	}
	for _, i := range gone {
		if _, inUse := users[i]; !inUse {
			delete(a.holders, i)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(users)) {
		if user := users[i]; user != "" && a.holders[i] == "" && !served[user] {
			a.holders[i], served[user] = user, true
		}
	}
	next := 0
	for _, node := range nodes {
		if served[node] {
			continue
		}
		for next < s.Len() && (a.holders[next] != "" || isUsed(users, next)) {
			next++
		}
		if next == s.Len() {
			a.waiting = append(a.waiting, node)
			continue
		}
		a.holders[next] = node
	}
	for i := range users {
		if !exists[a.holders[i]] {
			a.kept++
		}
	}
	return a, nil
}

func isUsed(users map[int]string, i int) bool {
	_, used := users[i]
	return used
}

// fillSlices writes an assignment into the status.
func (a assignment) fillSlices(status *v1alpha1.NodeSlicePoolStatus, s ranges.Slices) {
	status.Allocations = nil
	for _, i := range slices.Sorted(maps.Keys(a.holders)) {
		status.Allocations = append(status.Allocations,
			v1alpha1.NodeSliceAllocation{NodeName: a.holders[i], SliceRange: s.At(i).String()})
	}
	status.TotalSlices = int32(s.Len())
	status.AssignedSlices = int32(len(a.holders))
	status.FreeSlices = status.TotalSlices - status.AssignedSlices
}
