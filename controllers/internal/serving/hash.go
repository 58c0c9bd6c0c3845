package serving

import (
	"bytes"
	"hash/fnv"
	"io"
	"slices"

	"k8s.io/utils/dump"
)

// SortByHash sorts by the hash of each element's dump. The order has no meaning. It is the one that
// kube-controller-manager writes, and it depends on the names of the Go types and their fields.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/api/v1/endpoints/util.go, SortSubsets, and pkg/util/hash/hash.go;
// k8s.io/endpointslice v0.37.2 util/controller_utils.go, portsInOrder
func SortByHash[T any](items []T) {
	if len(items) < 2 {
		return
	}
	type hashed struct {
		sum  []byte
		item T
	}
	keyed := make([]hashed, len(items))
	hasher := fnv.New128a()
	for i, item := range items {
		hasher.Reset()
		// Writing to a hash cannot fail.
		_, _ = io.WriteString(hasher, dump.ForHash(item))
		keyed[i] = hashed{sum: hasher.Sum(nil), item: item}
	}
	slices.SortFunc(keyed, func(a, b hashed) int { return bytes.Compare(a.sum, b.sum) })
	for i := range keyed {
		items[i] = keyed[i].item
	}
}
