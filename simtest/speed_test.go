package simtest

import (
	"flag"
	"runtime/debug"
	"testing"
	"time"
)

var speed = flag.String("sim.speed", "", `what TestSpeed measures: "singles", or "pairs" as well`)

// TestSpeed measures how long it takes to try every single fault, and every pair, of a program with about 27 writes.
func TestSpeed(t *testing.T) {
	if *speed == "" {
		t.Skip("measures only with -sim.speed")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	s := copies(1)
	c := newChecker(t, s, Options{})
	if !c.baseline() {
		return
	}
	start := time.Now()
	const runs = 20
	for range runs {
		c.perform(&runPlan{Seed: firstSeed}, limits{})
	}
	t.Logf("%d writes, %d reads, %d events: one run takes %v", len(c.base.ops[atWrite]), len(c.base.ops[atRead]),
		len(c.base.ops[atEvent]), time.Since(start)/runs)
	far := time.Now().Add(time.Hour)
	singles := c.atWrites("single", crashBefore, crashAfter, timeout, conflict, serverError)
	c.work(singles, far)
	if *speed == "pairs" {
		c.work(allPairs(singles.plans), far)
	}
	t.Log(c.table(time.Since(start)))
}
