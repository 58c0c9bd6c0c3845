package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// weight ranks a replica for a key: the key belongs to the replica with the greatest weight. The weight depends on the
// two names only. So a new replica takes an equal share from each of the others, a replica that leaves gives its share
// back to them, and nothing else moves. The function must never change, because replicas of different versions have to
// agree.
//
// Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
func weight(replica, key string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\x00" + key))
	return binary.BigEndian.Uint64(sum[:])
}

// ranked returns the replicas ordered by their weight for a key, the greatest first.
func ranked(replicas []string, key string) []string {
	weights := make(map[string]uint64, len(replicas))
	for _, r := range replicas {
		weights[r] = weight(r, key)
	}
	return slices.SortedFunc(slices.Values(replicas), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
}
