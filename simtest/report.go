package simtest

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// report logs what was tried, if somebody asked for it.
func (c *checker) report(took time.Duration) {
	c.t.Helper()
	if testing.Verbose() || *reportFlag {
		c.t.Log(c.table(took))
	}
	if *reportFlag {
		c.t.Log(c.matrix())
	}
}

// columns are the faults at writes, as the matrix heads its columns.
var columns = []struct {
	head string
	kind faultKind
}{
	{"C-", crashBefore},
	{"C+", crashAfter},
	{"CS", staleRestart},
	{"L", lostAnswer},
	{"T", timeout},
	{"B", truncatedAnswer},
	{"R", reset},
	{"409", conflict},
	{"429", tooManyRequests},
	{"500", serverError},
	{"W", slowWatch},
	{"S", stall},
	{"P", pauseLeader},
}

// matrix tells how often each fault was tried at each write.
func (c *checker) matrix() string {
	var b strings.Builder
	b.WriteString("simtest: runs by write and fault, alone or with others\n")
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, column := range columns {
		fmt.Fprint(w, column.head, "\t")
	}
	fmt.Fprintln(w, " at write")
	for i, signature := range c.base.ops[atWrite] {
		for _, column := range columns {
			fmt.Fprint(w, c.at[hit{column.kind, i + 1}], "\t")
		}
		fmt.Fprintf(w, " %d, %s\n", i+1, signature)
	}
	_ = w.Flush() // to memory
	for i, column := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(column.head + " " + string(column.kind))
	}
	return b.String()
}

// hit is a fault at the write of a number.
type hit struct {
	kind faultKind
	at   int
}

// table tells what was tried.
func (c *checker) table(took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "simtest: the run without faults has %d writes, %d reads and %d events\n", len(c.base.ops[atWrite]),
		len(c.base.ops[atRead]), len(c.base.ops[atEvent]))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "tried\tof\tpruned\tfaults\truns/s\t what")
	runs, missed := 0, 0
	for _, s := range merge(c.tried) {
		if s.all == 0 {
			continue
		}
		if s.name != randomStage { // There is no end of these.
			missed += s.all - s.plans
		}
		rate := float64(s.plans) / max(s.took.Seconds(), 1e-9)
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%.0f\t %s\n", s.plans, s.all, s.pruned, s.struck, rate, s.name)
		runs += s.plans
	}
	_ = w.Flush() // to memory
	fmt.Fprintf(&b, "%d runs in %v of %v\nnot tried: %d of the above, ", runs, took.Round(time.Millisecond), c.budget,
		missed)
	if !c.s.Leases {
		b.WriteString("a paused leader (Scenario.Leases is not set), ")
	}
	b.WriteString("faults outside API requests")
	return b.String()
}

// short returns a message if the budget has ended before one fault was tried at each write. It says what to set. If the
// budget was enough, short returns "".
func (c *checker) short(took time.Duration) string {
	first := c.tried[0]
	if first.plans == first.all || len(c.found) > 0 {
		return ""
	}
	each := took / 3 // There were three runs without faults.
	if first.plans > 0 {
		each = first.took / time.Duration(first.plans)
	}
	need := took - first.took + each*time.Duration(first.all)
	need = (need * 3 / 2).Truncate(time.Second) + time.Second
	return fmt.Sprintf("simtest: %s: the budget of %v has ended after %d of %d runs with one fault at a write. Set "+
		"Scenario.Budget to %v, or run go test with -sim.budget=%[5]v",
		c.t.Name(), c.budget, first.plans, first.all, need)
}

// merge adds up stages of the same name.
func merge(stages []tried) []tried {
	var all []tried
	for _, s := range stages {
		if n := len(all); n > 0 && all[n-1].name == s.name {
			last := &all[n-1]
			last.plans, last.all, last.pruned = last.plans+s.plans, last.all+s.all, last.pruned+s.pruned
			last.struck, last.took = last.struck+s.struck, last.took+s.took
			continue
		}
		all = append(all, s)
	}
	return all
}
