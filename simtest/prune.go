package simtest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"
)

// fingerprint stands for all that a run depends on after a crash. The memory of the program is gone. What is left is
// the objects, where the user is, and the faults that are still to come; and, for the judges, what was created and
// deleted.
type fingerprint uint64

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
	h := fnv.New64a()
	encoder := json.NewEncoder(h)
	for _, i := range w.state.ids() {
		if o := w.state.objects[i]; o.revision > w.first {
			fmt.Fprintln(h, i, o.revision)
			_ = encoder.Encode(fields(o.object)) // fields that came from JSON
		}
	}
	for _, c := range w.record.changes {
		fmt.Fprintln(h, c.id, c.created, c.deleted, c.by)
	}
	for _, f := range w.plan.Faults {
		at := f.Kind.place()
		if f.At > w.counts[at] {
			fmt.Fprintln(h, f.Kind, f.At-w.counts[at], f.Revision)
		}
	}
	fmt.Fprintln(h, w.settles, w.record.steps, w.scripted.Load(), w.exits)
	fmt.Fprintln(h, time.Since(w.began), time.Since(w.lastChange))
	return w.limits.known(fingerprint(h.Sum64()))
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
