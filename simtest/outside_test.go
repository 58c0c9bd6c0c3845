package simtest

import (
	"context"
	"testing"
	"time"
)

// TestOutside: a fault at a call of a system outside the cluster keeps it from happening or only hides that it has
// happened, as at a write. A killed process calls in vain. The next one finds what it has left.
func TestOutside(t *testing.T) {
	type counter struct{ Calls int }
	s := Scenario{
		Build: func(e *Env) (Program, error) {
			c := Outside(e, "counter", func() *counter { return &counter{} })
			add := func() error { c.Calls++; return nil }
			return ProgramFunc(func(ctx context.Context) error {
				for range 3 { // A process that has been killed goes on until it looks at its context.
					if e.Call(ctx, "add", add) == nil {
						break
					}
				}
				<-ctx.Done()
				return nil
			}), nil
		},
		Script: (*User).Settle,
	}
	for kind, want := range map[faultKind]int{
		crashBefore: 1, crashAfter: 2, lostAnswer: 2, timeout: 2, truncatedAnswer: 2, reset: 1, conflict: 1,
		tooManyRequests: 1, serverError: 1, slowWatch: 1, stall: 1,
	} {
		c := newChecker(t, &s, Options{})
		r := c.perform(&runPlan{Seed: 1, Faults: []runFault{{Kind: kind, At: 1, Of: "add"}}}, limits{})
		if r.end == nil || len(r.findings) > 0 || r.unfit != "" || r.struck != 1 {
			t.Fatalf("%s: %v, %q, %d faults", kind, r.findings, r.unfit, r.struck)
		}
		got := r.end.objects[outsideID("counter")]["Calls"]
		if got != float64(want) {
			t.Errorf("%s: the end has %v calls, want %d", kind, got, want)
		}
	}
	s.Budget = time.Minute
	if f, _ := Find(t, s, Options{Runs: 10}); f == nil || len(f.Diff) != 1 ||
		f.Diff[0] != "outside counter: Calls is 2, without faults it is 1" {
		t.Errorf("found %v", f)
	}
}
