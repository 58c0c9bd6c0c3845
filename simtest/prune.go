package simtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"
)

// fingerprint stands for all that a run depends on after a crash. The memory of the program is gone. What is left is
// the objects, where the user is, and the faults that are still to come; and, for the judges, what was created and
// deleted.
type fingerprint uint64

// death is what a crash has left of a run.
type death struct {
	state  fingerprint // but for the faults that are still to come
	counts [3]int      // as in world
}

// fingerprint returns that of the run, if it has these faults.
func (d *death) fingerprint(faults []runFault) fingerprint {
	h := fnv.New64a()
	fmt.Fprintln(h, d.state)
	for _, f := range faults {
		at := f.Kind.place()
		if f.At > d.counts[at] {
			fmt.Fprintln(h, f.Kind, f.At-d.counts[at], f.Revision)
		}
	}
	return fingerprint(h.Sum64())
}

// goesOnElsewhere reports whether another run goes on from the state in which p has died.
func (w *world) goesOnElsewhere(p *process) bool {
	if w.limits.known == nil || len(w.scenario.Others) > 0 || len(w.processes) > 1 && w.plan.Processes > 1 ||
		p.nextLags != 0 || len(w.holds) > 0 || w.plan.random {
		return false
	}
	w.mu.Lock()
	elsewhere := len(w.outside) > 0 // whose state may be hidden
	w.mu.Unlock()
	if elsewhere {
		return false
	}
	d := w.death()
	w.record.died = cmp.Or(w.record.died, d)
	return w.limits.known(d.fingerprint(w.plan.Faults))
}

// death describes the present state of a run whose only process has died.
func (w *world) death() *death {
	h := fnv.New64a()
	encoder := json.NewEncoder(h)
	for _, i := range w.state.ids() {
		if o := w.state.objects[i]; o.revision > w.first {
			fmt.Fprintln(h, i, o.revision)
			_ = encoder.Encode(o.fields()) // they came from JSON
		}
	}
	for _, c := range w.record.changes {
		fmt.Fprintln(h, c.id, c.created, c.deleted, c.by)
	}
	fmt.Fprintln(h, w.settles, w.record.steps, w.scripted.Load(), w.exits)
	fmt.Fprintln(h, time.Since(w.began), time.Since(w.lastChange))
	return &death{fingerprint(h.Sum64()), w.counts}
}

// foretold reports whether the nth plan need not be performed: its first fault is a crash, and after that another plan
// goes on from the same state. Until its second fault, the run is the one that had only the first fault, so it dies as
// that did. If two runs of one plan have differed, nothing is foretold.
func (c *checker) foretold(p *runPlan, n int) bool {
	if len(p.Faults) != 2 || p.Seed != firstSeed || p.Processes != 0 || c.tally.Differs != "" {
		return false
	}
	first, second := p.Faults[0], p.Faults[1]
	d := c.died[hit{first.Kind, first.At}]
	return d != nil && second.At > d.counts[second.Kind.place()] && c.knownBefore(n)(d.fingerprint(p.Faults))
}

// knownBefore returns a function that reports whether a plan before the nth has reached a state. The first plan that
// reaches a state is never cut short, whichever is performed first: so the same plan has the finding in every search.
func (c *checker) knownBefore(n int) func(fingerprint) bool {
	return func(f fingerprint) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		first, ok := c.reached[f]
		if !ok || n < first {
			c.reached[f] = n
			return false
		}
		return first < n
	}
}
