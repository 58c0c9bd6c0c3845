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
	type candidate struct {
		name   string
		weight uint64
	}
	candidates := make([]candidate, len(replicas))
	for i, r := range replicas {
		candidates[i] = candidate{r, weight(r, key)}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(-cmp.Compare(a.weight, b.weight), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.name
	}
	return names
}
