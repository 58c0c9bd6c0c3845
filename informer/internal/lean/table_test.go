package lean

import "testing"

// TestFieldIsJudgedAgain: the values of a field that do not recur are not looked up for a time. When they have begun
// to recur, all are looked up again.
func TestFieldIsJudgedAgain(t *testing.T) {
	var s site
	lookUp := func(values int, recur bool) (n int) {
		for range values {
			if s.worth() {
				n++
				if recur {
					s.found++
				}
			}
		}
		return n
	}
	for _, step := range []struct {
		values int
		recur  bool
		want   int
	}{
		{judged, false, judged},
		{rested * judged, true, 0},
		{judged, true, judged},
		{judged, true, judged},
	} {
		if got := lookUp(step.values, step.recur); got != step.want {
			t.Errorf("of %d values %d were looked up, want %d", step.values, got, step.want)
		}
	}
}
