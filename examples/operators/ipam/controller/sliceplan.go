package controller

import (
	"maps"
	"slices"

	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

// assignment says who has which slice.
type assignment struct {
	// holders are nodes by the number of their slice.
	holders map[int]string
	// waiting are the nodes without a slice. kept counts the slices that are in use and that no node has which exists.
	waiting []string
	kept    int
}

// assign gives every node a slice. Who has one keeps it. That of a node that is gone is kept while addresses of it are in use. A slice
// that nobody has, but whose addresses are in use, belongs to the node that uses it: so a NodeSlicePool that was lost is found again.
// Other nodes get the first slices that are free, in order of their names.
//
// have is what the status says; nodes are in order. used tells the slices in use and the node that uses them, "" if that is not known; it
// is asked only if somebody lost a slice or wants one, and, since what is given away is not taken back, live if somebody lost one.
func assign(s ranges.Slices, have []v1alpha1.NodeSliceAllocation, nodes []string, used func(live bool) (map[int]string, error)) (assignment, error) {
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
		status.Allocations = append(status.Allocations, v1alpha1.NodeSliceAllocation{NodeName: a.holders[i], SliceRange: s.At(i).String()})
	}
	status.TotalSlices = int32(s.Len())
	status.AssignedSlices = int32(len(a.holders))
	status.FreeSlices = status.TotalSlices - status.AssignedSlices
}
