package simtest

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"testing"
	"time"
)

// Check runs the scenario without faults, and then with every fault that it can think of until its Budget is used
// up. It fails the test at the first finding, with a story that leads to it and a token that repeats it. The
// flag -sim.all makes it go on. If the budget is too small for one fault at each write, Check prints what to set.
//
// Check must not be called in a bubble of [testing/synctest]: each run is a bubble of its own.
func Check(t *testing.T, s Scenario) {
	t.Helper()
	c := newChecker(t, &s, Options{})
	c.keeps = true
	c.check()
	for _, f := range c.found {
		t.Error(f.report(t.Name()))
	}
}

// Options bound a search of [Find].
type Options struct {
	// Budget is how long to try, in real time. 0 is as [Check] does.
	Budget time.Duration

	// Runs is how many plans to try, so that the search is the same on a slow machine. 0 leaves it to the time.
	Runs int
}

// Report is what a search has done.
type Report struct {
	// Runs is how many plans were tried. Those that make a finding simpler do not count.
	Runs int

	// Took is the real time of the search.
	Took time.Duration

	// Differs tells where two runs of the same plan part, "" if they do not. If they do, a finding may not repeat, and
	// fields at the end that differ by chance may count as findings.
	Differs string
}

// Find is [Check], but returns the first finding instead of failing the test, or nil if there is none. It neither reads
// nor writes testdata/sim. With -sim.replay it repeats that run.
//
// Find fails the test only if a run could not be performed.
func Find(t *testing.T, s Scenario, o Options) (*Finding, Report) {
	t.Helper()
	c := newChecker(t, &s, o)
	c.check()
	if len(c.found) == 0 {
		return nil, c.tally
	}
	return &c.found[0], c.tally
}

func newChecker(t *testing.T, s *Scenario, o Options) *checker {
	t.Helper()
	if err := s.validate(o); err != nil {
		t.Fatal(err)
	}
	return &checker{
		t: t, s: s, runs: cmp.Or(o.Runs, math.MaxInt), budget: cmp.Or(o.Budget, *budgetFlag, s.Budget, DefaultBudget),
		bases: map[string]*run{}, reached: map[fingerprint]int{}, at: map[hit]int{}, died: map[hit]*death{},
		answers: &answers{known: map[string]answer{}},
	}
}

// check searches, or repeats the run of -sim.replay.
func (c *checker) check() {
	c.t.Helper()
	if *replayFlag != "" {
		c.replay(*replayFlag)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent)) // Runs leave much garbage and keep little.
	start := time.Now()
	if c.baseline() {
		if c.keeps {
			c.corpus()
		}
		c.explore(start.Add(c.budget))
		c.report(time.Since(start))
		if short := c.short(time.Since(start)); short != "" && c.keeps {
			fmt.Fprintln(os.Stderr, short) // Without -v, what a passing test logs is not shown.
		}
		drawn := c.base.plan
		if len(c.found) > 0 {
			drawn = c.found[0].plan
		}
		c.draw(drawn)
	}
	c.tally.Took = time.Since(start)
}
