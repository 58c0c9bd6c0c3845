package simtest

import (
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// single are the faults that are tried at every write.
var single = []faultKind{
	crashBefore, crashAfter, lostAnswer, timeout, truncatedAnswer, reset, conflict, tooManyRequests, serverError,
}

// randomBatch is how many random plans are made at a time.
const randomBatch = 64

// tried counts what one stage of the search has done.
type tried struct {
	name           string
	plans, all     int
	pruned, struck int
	took           time.Duration
}

// stage is a list of plans that are tried together.
type stage struct {
	name  string
	plans []*runPlan
}

// explore tries plans until the deadline or the first finding. If the corpus has one already, it tries nothing.
func (c *checker) explore(deadline time.Time) {
	singles := c.atWrites("one fault at each write", single...)
	goesOn := len(c.found) == 0 || *allFlag
	for _, s := range []stage{
		singles,
		c.staleRestarts(),
		c.hiddenStates(),
		c.atReads("one fault at each read", readExpired, readError, readReset),
		c.atEvents("one fault at each event", eventExpired, eventClose, eventGarbage),
		c.pausedLeaders(),
		c.atWrites("a slow watch from each write", slowWatch),
		c.atWrites("ten minutes of standstill at each write", stall),
	} {
		if !goesOn {
			c.leave(s.name, len(s.plans))
			continue
		}
		goesOn = c.work(s, deadline)
	}
	if !goesOn {
		n := 0
		for range pairs(singles.plans) {
			n++
		}
		c.leave(twoFaults, n)
		return
	}
	if !c.work(allPairs(singles.plans), deadline) {
		return
	}
	random := rand.New(rand.NewPCG(firstSeed, 3))
	for seed := uint64(secondSeed + 1); time.Now().Before(deadline); seed += randomBatch {
		if !c.work(c.randomPlans(seed, random), deadline) {
			return
		}
	}
}

// The names of the last stages.
const (
	twoFaults   = "two faults"
	randomStage = "random"
)

// leave notes, for the report, that no plan of a stage is tried.
func (c *checker) leave(name string, plans int) {
	c.tried = append(c.tried, tried{name: name, all: plans})
}

// work tries the plans of a stage. It reports whether the search goes on.
func (c *checker) work(s stage, deadline time.Time) bool {
	c.t.Helper()
	start := time.Now()
	results := make([]*run, len(s.plans))
	before := c.planned
	c.planned += len(s.plans)
	var next sync.Mutex
	index, last := 0, min(len(s.plans), max(c.runs-before, 0))
	take := func() int {
		next.Lock()
		defer next.Unlock()
		if index >= last || !time.Now().Before(deadline) {
			return -1
		}
		index++
		return index - 1
	}
	workers := runtime.GOMAXPROCS(0)
	if c.s.Serial {
		workers = 1
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := take(); i >= 0; i = take() {
				p := s.plans[i]
				if c.foretold(p, before+i) {
					results[i] = &run{struck: 1, hits: []hit{{p.Faults[0].Kind, p.Faults[0].At}}, pruned: true}
					continue
				}
				r := c.try(p, limits{known: c.knownBefore(before + i)})
				results[i] = r
				if len(r.findings) == 0 { // The rest is large.
					results[i] = &run{
						plan: p, struck: r.struck, hits: r.hits, pruned: r.pruned, died: r.died, broken: r.broken,
					}
				}
				if len(r.findings) > 0 && !*allFlag {
					next.Lock()
					last = min(last, i) // Plans before this one are still tried, so that the first finding is reported.
					next.Unlock()
				}
			}
		})
	}
	group.Wait()
	return c.conclude(s, results, time.Since(start)) && time.Now().Before(deadline) && c.planned < c.runs
}

// conclude counts the results of a stage and reports findings. It reports whether there was none.
func (c *checker) conclude(s stage, results []*run, took time.Duration) bool {
	c.t.Helper()
	count := tried{name: s.name, all: len(s.plans), took: took}
	good := true
	for _, r := range results {
		if r == nil {
			continue
		}
		count.plans++
		count.struck += r.struck
		for _, h := range r.hits {
			c.at[h]++
		}
		if r.died != nil && len(r.plan.Faults) == 1 && r.plan.Seed == firstSeed {
			c.died[r.hits[0]] = r.died
		}
		if r.pruned {
			count.pruned++
		}
		switch {
		case r.broken != nil:
			c.t.Error(r.broken)
			good = false
		case len(r.findings) > 0 && (good || *allFlag):
			good = false
			c.conclusion(r)
		}
	}
	c.tried = append(c.tried, count)
	c.tally.Runs += count.plans
	return good || *allFlag
}

// conclusion shrinks a run with a finding, keeps it for later, and reports it.
func (c *checker) conclusion(r *run) {
	c.t.Helper()
	r = c.shrink(r)
	r.mark(c.base)
	if c.keeps {
		c.keep(r)
	}
	c.fail(r.findings[0], r)
}

// atWrites returns the plans with one of the faults at one write.
func (c *checker) atWrites(name string, kinds ...faultKind) stage {
	s := stage{name: name}
	for i, signature := range c.base.ops[atWrite] {
		for _, k := range kinds {
			if k == conflict && strings.HasPrefix(signature, "create ") {
				continue // A create has no version that could conflict.
			}
			s.add(runFault{Kind: k, At: i + 1, Of: signature})
		}
	}
	return s
}

func (s *stage) add(faults ...runFault) {
	s.plans = append(s.plans, &runPlan{Seed: firstSeed, Faults: faults})
}

func (c *checker) atReads(name string, kinds ...faultKind) stage {
	s := stage{name: name}
	for i, signature := range c.base.ops[atRead] {
		for _, k := range kinds {
			if k != readExpired || !strings.HasPrefix(signature, "get ") {
				s.add(runFault{Kind: k, At: i + 1, Of: signature})
			}
		}
	}
	return s
}

func (c *checker) atEvents(name string, kinds ...faultKind) stage {
	s := stage{name: name}
	for i, signature := range c.base.ops[atEvent] {
		for _, k := range kinds {
			s.add(runFault{Kind: k, At: i + 1, Of: signature})
		}
	}
	return s
}

// staleRestarts returns, for each write, restarts on a replica that is at the version before the write, at the start,
// before each delete, and before an object of the same name is created again.
func (c *checker) staleRestarts() stage {
	s := stage{name: "a restart on a replica that lags"}
	points := []int64{c.base.first}
	gone := map[id]bool{}
	for _, ch := range c.base.changes {
		if again := ch.created && gone[ch.id]; ch.deleted || ch.doomed || again {
			points = append(points, ch.revision-1)
		}
		gone[ch.id] = gone[ch.id] || ch.deleted
	}
	for i, signature := range c.base.ops[atWrite] {
		now := c.base.writeRevisions[i]
		at := append(slices.Clone(points), now)
		slices.Sort(at)
		for _, r := range slices.Compact(at) {
			if r <= now {
				s.add(runFault{Kind: staleRestart, At: i + 1, Of: signature, Revision: r})
			}
		}
	}
	return s
}

// hiddenStates returns, for each event after which the object changes once more, the plan that hides it until then. A
// program that never gets its first list, because an event in it is hidden, cannot start; that is no finding.
func (c *checker) hiddenStates() stage {
	s := stage{name: "a state that is over before it is seen"}
	for i, e := range c.base.events {
		for _, ch := range c.base.changes {
			if ch.id == e.id && ch.revision > e.revision && !c.base.listed[i] {
				s.add(runFault{Kind: hide, At: i + 1, Of: c.base.ops[atEvent][i]})
				break
			}
		}
	}
	return s
}

// pausedLeaders returns, for each write, the plan that pauses the leader before it.
func (c *checker) pausedLeaders() stage {
	if !c.s.Leases {
		return stage{name: "a leader that is paused"}
	}
	s := c.atWrites("a leader that is paused", pauseLeader)
	for _, p := range s.plans {
		p.Processes = 2
		p.Faults[0].Of = ""
	}
	return s
}

// pairs returns each fault of the plans with a second one at a later write.
func pairs(singles []*runPlan) iter.Seq2[runFault, runFault] {
	return func(yield func(first, second runFault) bool) {
		for _, p := range singles {
			for _, q := range singles {
				first, second := p.Faults[0], q.Faults[0]
				if second.At < first.At || second.At == first.At && !first.Kind.crashes() {
					continue
				}
				second.Of = ""
				if second.At == first.At {
					second.At++ // the first write after the restart, if that repeats it
				}
				if !yield(first, second) {
					return
				}
			}
		}
	}
}

// allPairs returns the plans of [pairs].
func allPairs(singles []*runPlan) stage {
	s := stage{name: twoFaults}
	for first, second := range pairs(singles) {
		s.add(first, second)
	}
	return s
}

// randomPlans returns plans with a random schedule and up to two faults.
func (c *checker) randomPlans(seed uint64, r *rand.Rand) stage {
	s := stage{name: randomStage}
	writes := len(c.base.ops[atWrite])
	kinds := append(slices.Clone(single), slowWatch, slowWatch, slowWatch)
	for i := range uint64(randomBatch) {
		p := &runPlan{Seed: seed + i, Turns: map[int]int{}, random: true}
		for range r.IntN(3) {
			if writes > 0 {
				p.Faults = append(p.Faults, runFault{Kind: kinds[r.IntN(len(kinds))], At: 1 + r.IntN(writes)})
			}
		}
		s.plans = append(s.plans, p)
	}
	return s
}
