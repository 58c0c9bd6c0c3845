package simtest

import "testing"

// Speed is the flag -sim.speed.
var Speed = speed

// Once performs the run without faults, and returns the number of the program's writes and all findings.
func Once(t *testing.T, s *Scenario) (writes int, findings []Finding) {
	r := newChecker(t, s, Options{}).perform(&runPlan{Seed: firstSeed}, limits{})
	return len(r.ops[atWrite]), r.findings
}
