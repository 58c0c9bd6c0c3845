package simtest

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

var (
	budgetFlag = flag.Duration("sim.budget", 0, "how long simtest.Check tries, whatever the scenario says")
	replayFlag = flag.String("sim.replay", "", "the token of one run for simtest.Check to repeat")
	allFlag    = flag.Bool("sim.all", false, "let simtest.Check go on after the first finding")
	htmlFlag   = flag.String("sim.html", "", "a file to draw a run in: that of the finding, or without faults")
	reportFlag = flag.Bool("sim.report", false, "let simtest.Check print what it tried, also without -v")
)

// HandleError, of apimachinery, sleeps until a millisecond after the error before, whose time it remembers for the
// whole process. In a bubble, whose clock starts anew, it would sleep for as long as another bubble's clock is ahead.
func init() {
	if len(utilruntime.ErrorHandlers) > 1 {
		utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the one that logs
	}
}

// The seeds of the runs without faults. The second one tells which fields differ by chance.
const (
	firstSeed  = 1
	secondSeed = 2
)

// gcPercent is the garbage collector's target during a search. About 30 MB are alive, so that it comes to 300 MB.
const gcPercent = 1000

// checker is one call of [Check] or [Find].
type checker struct {
	t      *testing.T
	s      *Scenario
	budget time.Duration
	runs   int  // how many plans to try at most
	keeps  bool // findings are kept in testdata/sim, and those that are there are tried first

	base    *run            // the run without faults
	masked  map[string]bool // fields at the end that differ by chance
	answers *answers        // of the servers of all runs
	bases   map[string]*run // runs without faults with steps of the user left out, or with one worker
	tried   []tried         // what was done, for the report
	planned int             // plans of the stages so far
	at      map[hit]int     // faults tried at each write
	found   []Finding       // one for each rule and subject
	tally   Report

	// died has, for each crash that was tried as the only fault, what it has left.
	died map[hit]*death

	mu sync.Mutex // guards reached
	// reached has, for each state after a crash, the number of the first plan that has got there.
	reached map[fingerprint]int
}

// perform runs a plan in a bubble of its own.
func (c *checker) perform(p *runPlan, l limits) (r *run) {
	var bubble atomic.Value // the bubble's name, a string
	bubble.Store("")
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if r == nil || !strings.Contains(fmt.Sprint(v), "blocked goroutines remain") {
			panic(v)
		}
		if !slices.Contains(c.s.Allow, RuleStop) {
			r.findings = append(r.findings, Finding{
				Rule: RuleStop, Subject: "goroutines",
				Text: "goroutines are left after every Run has returned:\n" + leftovers(bubble.Load().(string)),
			})
		}
	}()
	if l.writes == 0 && c.base != nil {
		l.writes = 20*len(c.base.ops[atWrite]) + 500
	}
	l.steps, l.answers = new(atomic.Int64), c.answers
	defer c.watch(l.steps, &bubble)()
	synctest.Test(c.t, func(*testing.T) {
		bubble.Store(bubbleName())
		r = simulate(c.s, p, l, *replayFlag != "" && testing.Verbose())
	})
	return r
}

// A run in which nothing has happened for hangsAfter, in real time, is told of. After hopelessAfter the test ends.
const (
	hangsAfter    = 10 * time.Second
	hopelessAfter = 6 * hangsAfter
)

// watch tells what keeps a run from going on, if something does. The caller calls stop when the run is over.
func (c *checker) watch(steps *atomic.Int64, bubble *atomic.Value) (stop func()) {
	done := make(chan struct{}) // closed by stop
	go func() {
		ticker := time.NewTicker(hangsAfter)
		defer ticker.Stop()
		for last, idle := int64(0), time.Duration(0); ; {
			select {
			case <-done:
				return
			case <-ticker.C: // Ticks are lost while a debugger holds the process.
			}
			if now := steps.Load(); now != last {
				last, idle = now, 0
				continue
			}
			idle += hangsAfter
			culprits := blockers(bubble.Load().(string))
			if idle == hangsAfter {
				fmt.Fprintln(os.Stderr, hangs(c.t.Name(), culprits))
			}
			if idle >= hopelessAfter && culprits != "" {
				panic(hangs(c.t.Name(), culprits))
			}
		}
	}()
	return func() { close(done) }
}

// hangs tells that a run does not go on, and what may be done about it.
func hangs(test, culprits string) string {
	if culprits == "" {
		return fmt.Sprintf("simtest: %s: nothing has happened for %v. Does a goroutine of the program loop without "+
			"waiting, or ask for the resources of the API again and again?", test, hangsAfter)
	}
	return fmt.Sprintf("simtest: %s: nothing has happened for %v. Virtual time does not pass while a goroutine waits "+
		"for a socket or a mutex. Does the program open a port (metrics, probes, webhooks), use another config than "+
		"Env.Config, or hold a mutex while a request is under way?\n\n%s", test, hangsAfter, culprits)
}

// bubbleName returns what the stacks of this goroutine's bubble have in their first line.
func bubbleName() string {
	buf := make([]byte, 200)
	return bubbled.FindString(string(buf[:runtime.Stack(buf, false)]))
}

var bubbled = regexp.MustCompile(`synctest bubble \d+`)

// stacks returns the stacks of the goroutines of a bubble that are selected by the first line, except the scheduler's.
func stacks(bubble string, selected func(head string) bool) string {
	const most = 3
	buf := make([]byte, 1<<20)
	var found []string
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbled.FindString(head) == bubble && selected(head) && !strings.Contains(stack, "simtest.simulate") {
			found = append(found, stack)
		}
	}
	if len(found) > most {
		found = append(found[:most], fmt.Sprintf("and %d more", len(found)-most))
	}
	return strings.Join(found, "\n\n")
}

func leftovers(bubble string) string { return stacks(bubble, func(string) bool { return true }) }

// working matches the first line of the stack of a goroutine that waits for nothing, or for what ends by itself.
var working = regexp.MustCompile(`\[(running|runnable|GC |[^\]]*\(durable\))`)

// blockers returns the stacks of the goroutines of a bubble that wait for something outside of it, or for a mutex.
func blockers(bubble string) string {
	return stacks(bubble, func(head string) bool { return !working.MatchString(head) })
}

// baseline performs the runs without faults. It reports whether they are good enough to go on.
func (c *checker) baseline() bool {
	c.t.Helper()
	c.base = c.perform(&runPlan{Seed: firstSeed}, limits{writes: 10_000, cold: true, trace: true})
	if c.base.broken != nil {
		c.t.Errorf("simtest: %v", c.base.broken)
		return false
	}
	if len(c.base.findings) > 0 {
		c.fail(c.base.findings[0], c.base)
		return false
	}
	if f := c.base.idle(); f != nil && !slices.Contains(c.s.Allow, RuleWrites) {
		c.fail(*f, c.base)
		return false
	}
	if f := c.base.held(); f != nil && !slices.Contains(c.s.Allow, RuleMemory) {
		c.fail(*f, c.base)
		return false
	}
	again := c.perform(&runPlan{Seed: firstSeed}, limits{trace: true})
	other := c.perform(&runPlan{Seed: secondSeed}, limits{})
	for _, r := range []*run{again, other} {
		if len(r.findings) > 0 {
			c.fail(r.findings[0], r)
			return false
		}
	}
	c.tally.Differs = firstDifference(c.base.trace, again.trace)
	c.masked = map[string]bool{}
	for _, pair := range other.pairs(c.base) {
		for _, line := range pair[0].diff(pair[1]) {
			c.masked[fieldOf(line)] = true
		}
	}
	if d := c.tally.Differs; d != "" {
		c.t.Logf("simtest: two runs of the same plan differ, so findings may not repeat: %s", d)
	}
	return true
}

// firstDifference describes where two traces part, or returns "".
func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("operation %d is %q in one run and %q in the other", i+1, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("one run has %d operations, the other %d", len(a), len(b))
	}
	return ""
}

// fieldOf returns the object and field that a line of a diff is about, or the line if it is about the whole object.
func fieldOf(line string) string {
	field, _, _ := strings.Cut(line, " is ")
	if strings.HasSuffix(field, ":") {
		return line
	}
	return field
}

// try performs a plan and judges it.
func (c *checker) try(p *runPlan, l limits) *run {
	l.cold = l.cold || c.blurred()
	r := c.perform(p, l)
	if base := c.baseOf(p); base != nil {
		r.compare(base, c.masked, c.s)
	}
	return r
}

// blurred reports whether two ends that count as equal may differ. Otherwise a cold restart, which sees nothing but the
// objects, needs to be judged only in the run without faults.
func (c *checker) blurred() bool {
	return len(c.masked) > 0 || len(c.s.Ignore) > 0 || slices.Contains(c.s.Allow, RuleEnd)
}

// baseOf returns the run without faults that p is judged by, or nil if that fails itself.
func (c *checker) baseOf(p *runPlan) *run {
	if len(p.Skip) == 0 && !p.OneWorker {
		return c.base
	}
	key := fmt.Sprint(p.OneWorker, p.Skip)
	if base, ok := c.bases[key]; ok {
		return base
	}
	base := c.perform(&runPlan{Seed: firstSeed, Skip: p.Skip, OneWorker: p.OneWorker}, limits{})
	if len(base.findings) > 0 || base.broken != nil {
		base = nil
	}
	c.bases[key] = base
	return base
}

// replay repeats one run and tells its story.
func (c *checker) replay(token string) {
	c.t.Helper()
	p, err := parsePlan(token)
	if err != nil {
		c.t.Fatal(err)
	}
	if !c.baseline() {
		return
	}
	c.draw(p)
	r := c.try(p, limits{})
	misfit := c.misfit(r)
	switch {
	case r.broken != nil:
		c.t.Error(r.broken)
	case len(r.findings) > 0:
		c.fail(r.findings[0], r)
	case misfit != "":
		c.t.Errorf("simtest: the token no longer fits the program or the scenario: %s", misfit)
	default:
		c.t.Logf("simtest: the run passes\n%s", tellStory(r.story, len(r.story)))
	}
}

// misfit tells why a run is not the one that its token was made for, or returns "".
func (c *checker) misfit(r *run) string {
	switch p := r.plan; {
	case r.unfit != "":
		return r.unfit
	case r.struck < len(p.Faults):
		return fmt.Sprintf("only %d of its %d faults happened", r.struck, len(p.Faults))
	case p.Base != 0 && c.tally.Differs == "" && p.Base != c.base.hash():
		return "the writes without faults have changed"
	}
	return ""
}

// fail takes note of a finding.
func (c *checker) fail(f Finding, r *run) {
	f.plan, f.story = r.plan, r.story
	if f.told > 0 {
		f.story = r.story[:f.told]
	}
	same := func(other Finding) bool { return other.Rule == f.Rule && other.Subject == f.Subject }
	if !slices.ContainsFunc(c.found, same) {
		c.found = append(c.found, f)
	}
}
