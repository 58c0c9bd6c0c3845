package node

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	"sigs.k8s.io/yaml"
)

// exception is a reason for specs of Kubernetes to fail here.
type exception struct {
	// Reason is a sentence that stands word by word in [page].
	Reason string
	// With names the run in which the specs fail, withTheirs or withOurs; empty: both.
	With string
	// Specs are the full texts.
	Specs []string
	// Sometimes is for specs that fail now and then. They may pass.
	Sometimes bool
}

func readExceptions(t *testing.T) (list []exception) {
	t.Helper()
	text, err := os.ReadFile("testdata/exceptions.yaml")
	must(t, err)
	must(t, yaml.UnmarshalStrict(text, &list))
	return list
}

// judge returns what is wrong with the results of the two runs: specs that fail and are not expected to, that pass and
// are expected to fail, or that ran with one side's controllers and not with the other's.
func judge(list []exception, results map[string][]types.SpecReport) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	states := map[string]map[string]types.SpecReport{withTheirs: {}, withOurs: {}}
	for with, reports := range results {
		for _, r := range reports {
			states[with][r.FullText()] = r
		}
	}
	for _, with := range []string{withTheirs, withOurs} {
		expected := map[string]bool{}
		for _, e := range list {
			if e.With != "" && e.With != with {
				continue
			}
			for _, spec := range e.Specs {
				expected[spec] = true
				switch r, ran := states[with][spec]; {
				case !ran || r.State == types.SpecStateSkipped:
					report("with %s, %q does not run: the exception is to be removed", with, spec)
				case !r.Failed() && !e.Sometimes:
					report("with %s, %q passes: the exception is to be removed", with, spec)
				}
			}
		}
		for _, spec := range slices.Sorted(maps.Keys(states[with])) {
			if r := states[with][spec]; r.Failed() && !expected[spec] {
				report("with %s, %q fails: %s", with, spec, r.Failure.Message)
			}
		}
	}
	for _, spec := range slices.Sorted(maps.Keys(states[withTheirs])) {
		theirs := states[withTheirs][spec]
		switch ours, ran := states[withOurs][spec]; {
		case !ran:
			report("%q is missing with %s", spec, withOurs)
		case (theirs.State == types.SpecStateSkipped) != (ours.State == types.SpecStateSkipped):
			report("%q is %s with %s and %s with %s", spec, theirs.State, withTheirs, ours.State, withOurs)
		}
	}
	if len(states[withTheirs]) == 0 || len(states[withOurs]) != len(states[withTheirs]) {
		report("there are %d specs with %s and %d with %s", len(states[withTheirs]), withTheirs, len(states[withOurs]),
			withOurs)
	}
	return problems
}

// conformanceTable returns what page shows: for each group of specs how many passed and failed in each run, and how
// many ended themselves because the cluster lacks something.
func conformanceTable(results map[string][]types.SpecReport) string {
	type counts struct{ passed, failed, skipped int }
	groups := map[string]map[string]*counts{}
	for with, reports := range results {
		for _, r := range reports {
			group := groups[r.ContainerHierarchyTexts[0]]
			if group == nil {
				group = map[string]*counts{withTheirs: {}, withOurs: {}}
				groups[r.ContainerHierarchyTexts[0]] = group
			}
			switch c := group[with]; {
			case r.State == types.SpecStateSkipped:
				c.skipped++
			case r.Failed():
				c.failed++
			default:
				c.passed++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| specs | with %s: passed | failed | skipped | with %s: passed | failed | skipped |\n", withTheirs,
		withOurs)
	b.WriteString("|---|---|---|---|---|---|---|")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		theirs, ours := groups[name][withTheirs], groups[name][withOurs]
		fmt.Fprintf(&b, "\n| `%s` | %d | %d | %d | %d | %d | %d |", name, theirs.passed, theirs.failed, theirs.skipped,
			ours.passed, ours.failed, ours.skipped)
	}
	return b.String()
}

// TestExceptionsAreListed: the page has every exception's reason.
func TestExceptionsAreListed(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash(page))
	must(t, err)
	words := strings.Join(strings.Fields(string(text)), " ") // A reason may stand on two lines.
	for _, e := range readExceptions(t) {
		if e.Reason == "" || len(e.Specs) == 0 || !strings.Contains(words, e.Reason) {
			t.Errorf("%s does not have the reason %q, or it is for no spec", page, e.Reason)
		}
		if e.With != "" && e.With != withTheirs && e.With != withOurs {
			t.Errorf("there is no run with %q", e.With)
		}
	}
}

// TestJudge: exceptions are checked both ways, in the run that they are for, and the two runs have the same specs.
func TestJudge(t *testing.T) {
	reports := func(states ...types.SpecState) (all []types.SpecReport) {
		for i, s := range states {
			all = append(all, types.SpecReport{
				ContainerHierarchyTexts: []string{"group"}, LeafNodeText: string(rune('a' + i)), State: s,
				Failure: types.Failure{Message: "why"},
			})
		}
		return all
	}
	const passed, failed, skipped = types.SpecStatePassed, types.SpecStateFailed, types.SpecStateSkipped
	results := map[string][]types.SpecReport{
		withTheirs: reports(passed, failed, passed, skipped, types.SpecStateTimedout, passed),
		withOurs:   reports(passed, passed, failed, passed, failed),
	}
	list := []exception{
		{Specs: []string{"group b"}},
		{Specs: []string{"group e"}, With: withOurs},
		{Specs: []string{"group a"}, Sometimes: true},
		{Specs: []string{"group d"}, With: withTheirs, Sometimes: true},
	}
	got := strings.Join(judge(list, results), "\n")
	want := strings.Join([]string{
		`with kube-controller-manager, "group d" does not run: the exception is to be removed`,
		`with kube-controller-manager, "group e" fails: why`,
		`with flyball manager, "group b" passes: the exception is to be removed`,
		`with flyball manager, "group c" fails: why`,
		`"group d" is skipped with kube-controller-manager and passed with flyball manager`,
		`"group f" is missing with flyball manager`,
		`there are 6 specs with kube-controller-manager and 5 with flyball manager`,
	}, "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	want = "| specs | with kube-controller-manager: passed | failed | skipped " +
		"| with flyball manager: passed | failed | skipped |" + `
|---|---|---|---|---|---|---|
| ` + "`group`" + ` | 3 | 2 | 1 | 3 | 2 | 0 |`
	if got := conformanceTable(results); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if problems := judge(nil, nil); len(problems) != 1 {
		t.Errorf("without a result: %q", problems)
	}
}
