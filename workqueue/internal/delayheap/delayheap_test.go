package delayheap

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestHeapMatchesList sets, changes and removes delays at random, and compares with a list that is sorted each time.
func TestHeapMatchesList(t *testing.T) {
	type delay struct {
		target   uint32
		deadline time.Duration
	}
	random := rand.New(rand.NewPCG(1, 2))
	places := map[uint32]int32{}
	h := New(func(target uint32, place int32) { places[target] = place })
	var list []delay // in the order in which they were set
	find := func(target uint32) int {
		return slices.IndexFunc(list, func(d delay) bool { return d.target == target })
	}
	for range 10_000 {
		target, deadline := uint32(random.IntN(200)), time.Duration(random.IntN(50))
		switch i := find(target); {
		case i < 0:
			h.Push(target, deadline)
			list = append(list, delay{target, deadline})
		case random.IntN(2) == 0:
			h.Set(int(places[target]), deadline)
			list = append(slices.Delete(list, i, i+1), delay{target, deadline})
		default:
			if got := h.Remove(int(places[target])); got != target || places[target] != None {
				t.Fatalf("removed %d, want %d; its place is %d", got, target, places[target])
			}
			list = slices.Delete(list, i, i+1)
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b delay) int { return cmp.Compare(a.deadline, b.deadline) })
		got := h.First(10)
		if h.Len() != len(want) || len(got) != min(10, len(want)) {
			t.Fatalf("%d delays, the first of which are %v; want %d", h.Len(), got, len(want))
		}
		for i, d := range got {
			if d.Target != want[i].target || d.Deadline != want[i].deadline {
				t.Fatalf("delay %d is of %d at %d, want %v", i, d.Target, d.Deadline, want[i])
			}
		}
	}
	for place, d := range h.All() {
		if places[d.Target] != int32(place) {
			t.Errorf("delay of %d is at %d and was reported at %d", d.Target, place, places[d.Target])
		}
	}
}
