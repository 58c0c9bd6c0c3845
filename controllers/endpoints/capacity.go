package endpoints

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxAddresses is how many addresses Endpoints may hold.
const maxAddresses = 1000

// truncate returns at most [maxAddresses] of the addresses in subsets, and reports whether it left any out. Ready
// addresses come first. Where not all fit, the subsets share the places in proportion to their sizes, rounded up, so
// the last may get fewer. A subset without addresses is dropped, since the API does not accept one.
//
// It does not change its argument.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, truncateEndpoints
func truncate(subsets []corev1.EndpointSubset) ([]corev1.EndpointSubset, bool) {
	totalReady, totalNotReady := count(subsets)
	if totalReady+totalNotReady <= maxAddresses {
		return subsets, false
	}
	truncated := slices.Clone(subsets)
	if totalReady > maxAddresses {
		s := share{limit: maxAddresses, total: totalReady, left: maxAddresses}
		for i := range truncated {
			truncated[i].Addresses = s.take(truncated[i].Addresses)
			truncated[i].NotReadyAddresses = nil
		}
	} else {
		s := share{limit: maxAddresses - totalReady, total: totalNotReady, left: maxAddresses - totalReady}
		for i := range truncated {
			truncated[i].NotReadyAddresses = s.take(truncated[i].NotReadyAddresses)
		}
	}
	return slices.DeleteFunc(truncated, isEmpty), true
}

func isEmpty(s corev1.EndpointSubset) bool {
	return len(s.Addresses) == 0 && len(s.NotReadyAddresses) == 0
}

// share divides limit places among lists that hold total addresses.
type share struct {
	limit, total int
	left         int // Invariant: limit less what was taken.
}

// take returns the part of list that its share allows, from the front.
func (s *share) take(list []corev1.EndpointAddress) []corev1.EndpointAddress {
	n := int(math.Ceil((float64(len(list)) / float64(s.total)) * float64(s.limit)))
	n = min(n, s.left, len(list))
	s.left -= n
	return list[:n:n]
}
