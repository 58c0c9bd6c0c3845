package ordered

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMapAgainstModel applies random operations to a Map and a plain map, and keeps snapshots that must not change.
func TestMapAgainstModel(t *testing.T) {
	type snapshot struct {
		got  *Map[int]
		want map[string]int
	}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var m Map[int]
		model := map[string]int{}
		var snapshots []snapshot
		for step := range 5000 {
			key := fmt.Sprintf("k%04d", rnd.IntN(2000))
			switch op := rnd.IntN(100); {
			case op < 60:
				m.Set(key, step)
				model[key] = step
			case op < 98:
				_, had := model[key]
				if m.Delete(key) != had {
					t.Fatalf("seed %d step %d: Delete(%s) disagrees with the model", seed, step, key)
				}
				delete(model, key)
			default:
				snapshots = append(snapshots, snapshot{m.Snapshot(), maps.Clone(model)})
			}
		}
		snapshots = append(snapshots, snapshot{&m, model})
		for i, s := range snapshots {
			checkMap(t, fmt.Sprintf("seed %d snapshot %d", seed, i), s.got, s.want)
		}
	}
}

func checkMap(t *testing.T, what string, m *Map[int], want map[string]int) {
	t.Helper()
	if m.Len() != len(want) {
		t.Fatalf("%s: Len() = %d, want %d", what, m.Len(), len(want))
	}
	keys := slices.Sorted(maps.Keys(want))
	i := 0
	for k, v := range m.From("") {
		if k != keys[i] || v != want[k] {
			t.Fatalf("%s: entry %d is %s=%d, want %s=%d", what, i, k, v, keys[i], want[keys[i]])
		}
		i++
	}
	if i != len(keys) {
		t.Fatalf("%s: iterated over %d entries, want %d", what, i, len(keys))
	}
	for _, start := range []string{"k0500", "k05001", "z"} {
		at, _ := slices.BinarySearch(keys, start)
		var got []string
		for k := range m.From(start) {
			got = append(got, k)
		}
		if !slices.Equal(got, keys[at:]) {
			t.Fatalf("%s: From(%s) gave %d keys, want %d", what, start, len(got), len(keys)-at)
		}
	}
}
