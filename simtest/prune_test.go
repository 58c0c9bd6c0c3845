package simtest

import (
	"slices"
	"testing"
)

// TestPruneIsExact: a run that was cut short would have come to what the run that has reached the same state before
// comes to: the same objects and the same findings, also where there are findings. What is foretold of a crash is what
// a run comes to.
func TestPruneIsExact(t *testing.T) {
	c := newChecker(t, &Scenario{Build: twice(false), Script: func(u *User) {
		u.Create(sources()[1])
		u.Settle()
	}}, Options{})
	if !c.baseline() {
		t.Fatal(c.found)
	}
	singles := c.atWrites("", single...)
	plans := append(slices.Clone(singles.plans), allPairs(singles.plans).plans...)
	first, died := map[fingerprint]int{}, map[hit]*death{}
	cut, found, foretold := 0, 0, 0
	for i, p := range plans {
		twin := -1
		var seen []fingerprint
		known := func(f fingerprint) bool {
			seen = append(seen, f)
			n, ok := first[f]
			if !ok {
				first[f] = i
				return false
			}
			twin = n
			return true
		}
		r := c.try(p, limits{known: known})
		if d := died[hit{p.Faults[0].Kind, p.Faults[0].At}]; d != nil {
			foretold++
			if len(seen) == 0 || seen[0] != d.fingerprint(p.Faults) {
				t.Errorf("%v: after the first crash the state is not that of the crash alone", p.Faults)
			}
		}
		if len(p.Faults) == 1 && r.died != nil {
			died[r.hits[0]] = r.died
		}
		if !r.pruned {
			continue
		}
		cut++
		pruned, other := c.try(p, limits{}), c.try(plans[twin], limits{})
		same := func(a, b Finding) bool { return a.Rule == b.Rule && a.Subject == b.Subject }
		found += len(pruned.findings)
		if !slices.EqualFunc(pruned.findings, other.findings, same) || len(pruned.end.diff(other.end)) > 0 {
			t.Errorf("%v: %v; %v: %v; the ends differ by %q", p.Faults, pruned.findings, plans[twin].Faults,
				other.findings, pruned.end.diff(other.end))
		}
	}
	if cut < 50 || found < 10 || foretold < 100 {
		t.Errorf("%d runs were cut short, %d of them have findings, %d were foretold: too few to tell", cut, found,
			foretold)
	}
}
