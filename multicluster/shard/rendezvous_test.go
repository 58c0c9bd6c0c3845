package shard

import (
	"fmt"
	"slices"
	"testing"
)

// Each of n replicas has its share of 4,000 clusters, to within a seventh. When a replica starts or leaves, only its
// share moves.
func TestRendezvous(t *testing.T) {
	const clusters = 4000
	assign := func(replicas []string) (of map[string]string) {
		of = map[string]string{}
		for i := range clusters {
			name := fmt.Sprintf("zone-%d/cluster-%d", i%7, i)
			of[name] = ranked(replicas, name)[0]
		}
		return of
	}
	var replicas []string
	var before map[string]string
	for n := 1; n <= 10; n++ {
		added := fmt.Sprintf("replica-%d", n-1)
		replicas = append(replicas, added)
		after := assign(replicas)
		shares := map[string]int{}
		moved := 0
		for name, r := range after {
			shares[r]++
			if n > 1 && before[name] != r {
				moved++
				if r != added {
					t.Fatalf("%d replicas: %s moved from %s to %s", n, name, before[name], r)
				}
			}
		}
		for r, share := range shares {
			if share < clusters/n*6/7 || share > clusters/n*8/7 {
				t.Errorf("%d replicas: %s has %d of %d", n, r, share, clusters)
			}
		}
		t.Logf("%2d replicas: shares from %d to %d, %d moved", n, slices.Min(values(shares)),
			slices.Max(values(shares)), moved)
		before = after
	}
}

func values(m map[string]int) (all []int) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// The order depends only on the given names. Replicas of different versions have to agree, so this test pins it.
func TestRankedIsPinned(t *testing.T) {
	want := []string{"b", "a", "c"}
	for _, given := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
		if got := ranked(given, "eu/shop"); !slices.Equal(got, want) {
			t.Errorf("ranked(%v) = %v, want %v", given, got, want)
		}
	}
	if got := weight("a", "eu/shop"); got != 0x4aa08be9f3c43c19 {
		t.Errorf("weight %#x", got)
	}
}
