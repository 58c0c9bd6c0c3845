package simtest

import (
	"flag"
	"runtime/debug"
	"syscall"
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
	c.logRuns()
	start, began := time.Now(), processorTime()
	far := start.Add(time.Hour)
	singles := c.atWrites("single", crashBefore, crashAfter, timeout, conflict, serverError)
	c.work(singles, far)
	if *speed == "pairs" {
		c.work(allPairs(singles.plans), far)
	}
	t.Logf("%v of processor time\n%s", processorTime()-began, c.table(time.Since(start)))
}

// logRuns logs what a run without faults takes.
func (c *checker) logRuns() {
	const runs = 40
	start, began := time.Now(), processorTime()
	for range runs {
		c.perform(&runPlan{Seed: firstSeed}, limits{})
	}
	c.t.Logf("%d writes, %d reads, %d events: one run takes %v, and %v of processor time", len(c.base.ops[atWrite]),
		len(c.base.ops[atRead]), len(c.base.ops[atEvent]), time.Since(start)/runs, (processorTime()-began)/runs)
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
