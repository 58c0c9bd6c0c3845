package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// weight is how much a replica is meant for a key: of all replicas, the one with the greatest weight is. It depends
// on nothing else, so that when a replica comes it gets its share from all others alike, and when one goes its share
// goes to all others; nothing else moves. It must never change: replicas of different versions have to agree.
//
// Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
func weight(replica, key string) uint64 {
	sum := sha256.Sum256([]byte(replica + "\x00" + key))
	return binary.BigEndian.Uint64(sum[:])
}

// ranked orders replicas by their weight for a key, the one that is meant first.
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
