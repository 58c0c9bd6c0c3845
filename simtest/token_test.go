package simtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestParsePlanRefuses: a token that was cut, changed or written by hand is refused, whatever is in it.
func TestParsePlanRefuses(t *testing.T) {
	good := &runPlan{
		Seed: 3, Turns: map[int]int{4: later}, Skip: []int{2}, Processes: 2, Base: 7,
		Faults: []runFault{{Kind: crashAfter, At: 1, Of: "create pods default/a"}},
	}
	p, err := parsePlan(good.token())
	if err != nil || p.token() != good.token() {
		t.Fatalf("%+v, %v", p, err)
	}
	bad := map[string]*runPlan{
		"fault":     {Faults: []runFault{{Kind: "flood", At: 1}}},
		"place":     {Faults: []runFault{{Kind: crashAfter}}},
		"revision":  {Faults: []runFault{{Kind: staleRestart, At: 1, Revision: -1}}},
		"turn":      {Turns: map[int]int{3: -2}},
		"choice":    {Turns: map[int]int{0: 1}},
		"step":      {Skip: []int{0}},
		"processes": {Processes: 1 << 30},
	}
	tokens := []string{"", "junk", "!", good.token()[:10], good.token() + "x", "AAAA"}
	for _, p := range bad {
		tokens = append(tokens, p.token())
	}
	for _, token := range tokens {
		if p, err := parsePlan(token); err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("%q: %+v, %v", token, p, err)
		}
	}
}

// TestCorpusKeepsOneLine: a finding whose text has lines is kept so that the file can be read again.
func TestCorpusKeepsOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	c := &checker{t: t}
	p := &runPlan{Faults: []runFault{{Kind: crashAfter, At: 1}}}
	c.keep(&run{plan: p, findings: []Finding{{Text: "panic: a\ngoroutine 1"}}})
	data, err := os.ReadFile(c.corpusFile())
	if want := "# panic: a\n" + p.token() + "\n"; string(data) != want || err != nil {
		t.Errorf("%q, %v, want %q", data, err, want)
	}
}

// TestMisfit: a token tells that the program does something else where its fault was, or does other things in all.
func TestMisfit(t *testing.T) {
	c := newChecker(t, copies(1), Options{})
	if !c.baseline() {
		t.Fatal(c.found)
	}
	try := func(p *runPlan) string { return c.misfit(c.try(p, limits{})) }
	p := &runPlan{Seed: firstSeed, Faults: []runFault{{Kind: lostAnswer, At: 2}}, Base: c.base.hash()}
	if got := try(p); got != "" {
		t.Errorf("the plan does not fit: %s", got)
	}
	other := p.copy()
	other.Base++
	late := p.copy()
	late.Faults[0].At = 1000
	strange := p.copy()
	strange.Faults[0].Of = "create pods default/a"
	for _, p := range []*runPlan{other, late, strange} {
		if try(p) == "" {
			t.Errorf("%+v fits", p)
		}
	}
}

// TestShrinkMovesFaults: when steps of the user are left out, the fault follows its write, which gets another number.
func TestShrinkMovesFaults(t *testing.T) {
	s := copies(1)
	c := newChecker(t, s, Options{})
	if !c.baseline() {
		t.Fatal(c.found)
	}
	const at = 14 // the second of the four writes that source-3 causes
	r := c.try(&runPlan{Seed: firstSeed, Faults: []runFault{{Kind: lostAnswer, At: at}}}, limits{})
	p := r.plan.copy()
	p.Skip = []int{2} // source-1
	moved := c.move(p, r)
	if moved == nil {
		t.Fatal("the fault stays")
	}
	line := func(r *run) string { // what the fault is at
		i := slices.IndexFunc(r.story, func(m *moment) bool { return m.fault != nil })
		return r.story[i].text
	}
	if got, want := line(c.try(moved, limits{})), line(r); got != want {
		t.Errorf("the fault is at %q, then at %q", want, got)
	}
}

// TestShrinkToOneWorker: a finding that does not need more than one worker is shown with one. The other program has its
// mistake only if it has several.
func TestShrinkToOneWorker(t *testing.T) {
	for _, needsMany := range []bool{false, true} {
		f, _ := Find(t, Scenario{
			Build: func(e *Env) (Program, error) {
				return twice(e.Workers(4) == 1 && needsMany)(e)
			},
			Script: func(u *User) { u.Settle() },
		}, Options{Budget: time.Minute})
		if f == nil || f.plan.OneWorker == needsMany ||
			strings.Contains(f.String(), "every controller has one worker") == needsMany {
			t.Errorf("needs many: %v, found %v", needsMany, f)
		}
	}
}

// TestNegativeBudget: a search that would try nothing is refused.
func TestNegativeBudget(t *testing.T) {
	for _, s := range []Scenario{{Budget: -time.Second}, {}} {
		s.Build, s.Script = newCopier(1), func(*User) {}
		o := Options{}
		if s.Budget == 0 {
			o.Budget = -1
		}
		if err := s.validate(o); err == nil {
			t.Errorf("%v, %v are accepted", s.Budget, o.Budget)
		}
	}
}
