package simtest

import (
	"maps"
	"slices"
	"time"
)

// Making a finding simpler is bounded by a number of runs, so that it comes to the same on a slow machine. The time is
// for programs whose runs are very long.
const (
	shrinkRuns = 100
	shrinkFor  = 20 * time.Second
)

// shrink returns the simplest run that it finds with the same finding: fewer faults, one worker, a schedule closer to
// first in, first out, fewer steps of the user.
func (c *checker) shrink(r *run) *run {
	deadline := time.Now().Add(shrinkFor)
	rule := r.findings[0].Rule
	runs := 0
	better := func(p *runPlan) bool {
		if runs++; runs > shrinkRuns || !time.Now().Before(deadline) || c.baseOf(p) == nil {
			return false
		}
		found := c.try(p, limits{})
		if found.broken != nil || len(found.findings) == 0 || found.findings[0].Rule != rule {
			return false
		}
		r = found
		return true
	}
	for i := len(r.plan.Faults) - 1; i >= 0; i-- {
		p := r.plan.copy()
		p.Faults = slices.Delete(p.Faults, i, i+1)
		better(p)
	}
	betterMoved := func(p *runPlan) {
		if moved := c.move(p, r); moved == nil || !better(moved) {
			better(p)
		}
	}
	if p := r.plan.copy(); c.base.manyWorkers {
		p.OneWorker = true
		betterMoved(p)
	}
	c.shrinkTurns(func() *runPlan { return r.plan }, better)
	for step := c.base.steps; step >= 1; step-- {
		p := r.plan.copy()
		p.Skip = append(p.Skip, step)
		betterMoved(p)
	}
	return r
}

// shrinkTurns removes departures from the schedule: all, then halves, then ever smaller parts.
func (c *checker) shrinkTurns(current func() *runPlan, better func(*runPlan) bool) {
	for size := len(current().Turns); size > 0; size /= 2 {
		keys := slices.Sorted(maps.Keys(current().Turns))
		for from := 0; from < len(keys); from += size {
			p := current().copy()
			for _, k := range keys[from:min(from+size, len(keys))] {
				delete(p.Turns, k)
			}
			better(p)
		}
	}
}

// move returns p with its faults at the writes that they were at in r, which have other numbers when p skips a step
// before them, or has one worker. Writes of the same signature are counted from the last one. It returns nil if the
// numbers are the same, or if there is no such write.
func (c *checker) move(p *runPlan, r *run) *runPlan {
	before, now := c.baseOf(r.plan), c.baseOf(p)
	if before == nil || now == nil {
		return nil
	}
	p = p.copy()
	for i := range p.Faults {
		f := &p.Faults[i]
		n := slices.Index(r.hits, hit{f.Kind, f.At})
		if n < 0 || f.Kind.place() != atWrite || f.Kind == staleRestart || f.At > len(before.ops[atWrite]) {
			return nil
		}
		same := func(signature string) bool { return signature == r.places[n] }
		at := lastBut(now.ops[atWrite], countIf(before.ops[atWrite][f.At-1:], same), same)
		if at < 0 {
			return nil
		}
		f.At, f.Of = at+1, ""
	}
	if slices.EqualFunc(p.Faults, r.plan.Faults, func(a, b runFault) bool { return a.At == b.At }) {
		return nil
	}
	return p
}

// countIf returns how many elements match.
func countIf(list []string, match func(string) bool) int {
	n := 0
	for _, s := range list {
		if match(s) {
			n++
		}
	}
	return n
}

// lastBut returns the index of the nth element that matches, from 1 and from the end, or -1.
func lastBut(list []string, n int, match func(string) bool) int {
	for i, s := range slices.Backward(list) {
		if match(s) {
			if n--; n == 0 {
				return i
			}
		}
	}
	return -1
}

func (p *runPlan) copy() *runPlan {
	q := *p
	q.Faults, q.Turns, q.Skip, q.random = slices.Clone(p.Faults), maps.Clone(p.Turns), slices.Clone(p.Skip), false
	return &q
}
