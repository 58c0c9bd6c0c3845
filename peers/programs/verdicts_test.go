package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	"sigs.k8s.io/yaml"
)

// The places where a spec may run: on flyball serve alone, or on another one with kube-controller-manager and
// kube-scheduler behind it.
const (
	alone   = "alone"
	behind  = "behind"
	nowhere = "nowhere"
)

// verdict is what is known of some specs before they run.
type verdict struct {
	// Place is where they run.
	Place string
	// Fails means that they do not pass.
	Fails bool
	// Reason is why they fail, or do not run on flyball serve alone.
	Reason string
	// Specs are regular expressions. Each stands for the specs that it matches and no earlier one does.
	Specs []string
}

// passes is the verdict on a spec that is not listed.
var passes = &verdict{Place: alone}

// conformance returns the names of all conformance specs, from the list that Kubernetes keeps.
func conformance(t *testing.T) (names []string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatalf("find the sources of Kubernetes: %v", err)
	}
	const file = "test/conformance/testdata/conformance.yaml"
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Codename string }
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		names = append(names, s.Codename)
	}
	slices.Sort(names)
	return names
}

func readVerdicts(t *testing.T) (list []verdict) {
	t.Helper()
	text, err := os.ReadFile("testdata/exceptions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// verdicts returns the verdict on each spec, and what is wrong with the list.
func verdicts(list []verdict, specs []string) (on map[string]*verdict, problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	on = map[string]*verdict{}
	for i := range list {
		v := &list[i]
		if !slices.Contains([]string{alone, behind, nowhere}, v.Place) || v.Fails && v.Place == nowhere ||
			!v.Fails && v.Place == alone {
			report("place %q and fails %v make no exception (%s)", v.Place, v.Fails, v.Reason)
		}
		if v.Reason == "" {
			report("no reason is given for %q", v.Specs)
		}
		for _, pattern := range v.Specs {
			expression, err := regexp.Compile(pattern)
			if err != nil {
				report("%v", err)
				continue
			}
			before := len(on)
			for _, spec := range specs {
				if on[spec] == nil && expression.MatchString(spec) {
					on[spec] = v
				}
			}
			if len(on) == before {
				report("%q matches no spec that is not listed before", pattern)
			}
		}
	}
	for _, spec := range specs {
		if on[spec] == nil {
			on[spec] = passes
		}
	}
	return on, problems
}

// judge returns what differs from the verdicts on the specs that run at a place.
func judge(specs []string, on map[string]*verdict, place string, reports []types.SpecReport) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	ran := map[string]bool{}
	for _, r := range reports {
		spec := r.FullText()
		ran[spec] = true
		switch v, passed := on[spec], r.State == types.SpecStatePassed; {
		case v == nil:
			report("%q ran, and is not in the list of conformance tests", spec)
		case v.Place != place:
			report("%q ran %s, and should run %s", spec, place, v.Place)
		case passed && v.Fails:
			report("%q passes: remove the exception (%s)", spec, v.Reason)
		case !passed && !v.Fails:
			report("%q %s: %.1000s", spec, r.State, r.Failure.Message)
		}
	}
	for _, spec := range specs {
		if on[spec].Place == place && !ran[spec] {
			report("%q did not run", spec)
		}
	}
	return problems
}

// TestList: every pattern stands for specs that exist, and has a reason.
func TestList(t *testing.T) {
	_, problems := verdicts(readVerdicts(t), conformance(t))
	for _, p := range problems {
		t.Error(p)
	}
}

// TestVerdicts: the first pattern that matches counts, and one that adds nothing is reported.
func TestVerdicts(t *testing.T) {
	list := []verdict{
		{Place: nowhere, Reason: "container", Specs: []string{"^a", "logs$"}},
		{Place: behind, Fails: true, Reason: "missing", Specs: []string{"b", "a1", "("}},
		{Place: alone, Specs: []string{"c"}},
	}
	on, problems := verdicts(list, []string{"a1", "a2 b", "b1", "c", "d", "d logs"})
	for spec, want := range map[string]*verdict{
		"a1": &list[0], "a2 b": &list[0], "d logs": &list[0], "b1": &list[1], "c": &list[2], "d": passes,
	} {
		if on[spec] != want {
			t.Errorf("%s: got %v, want %v", spec, on[spec], want)
		}
	}
	wanted := []string{
		`"a1" matches no spec that is not listed before`, "error parsing regexp: missing closing ): `(`",
		`place "alone" and fails false make no exception ()`, `no reason is given for ["c"]`,
	}
	if !slices.Equal(problems, wanted) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(wanted, "\n"))
	}
}

// TestJudge: the list is checked both ways, and no spec is forgotten.
func TestJudge(t *testing.T) {
	failing := &verdict{Place: alone, Fails: true, Reason: "missing"}
	on := map[string]*verdict{
		"skipped": {Place: nowhere}, "elsewhere": {Place: behind}, "fails": failing, "passes": failing,
		"gone": failing, "good": passes, "bad": passes, "skips itself": passes, "lost": passes,
	}
	var reports []types.SpecReport
	for _, r := range []struct {
		spec  string
		state types.SpecState
	}{
		{"skipped", types.SpecStatePassed},
		{"fails", types.SpecStateFailed},
		{"passes", types.SpecStatePassed},
		{"good", types.SpecStatePassed},
		{"bad", types.SpecStateTimedout},
		{"skips itself", types.SpecStateSkipped},
		{"new", types.SpecStatePassed},
	} {
		reports = append(reports,
			types.SpecReport{LeafNodeText: r.spec, State: r.state, Failure: types.Failure{Message: "why"}})
	}
	want := []string{
		`"skipped" ran alone, and should run nowhere`, `"passes" passes: remove the exception (missing)`,
		`"bad" timedout: why`, `"skips itself" skipped: why`, `"new" ran, and is not in the list of conformance tests`,
		`"gone" did not run`, `"lost" did not run`,
	}
	all := []string{"skipped", "elsewhere", "fails", "passes", "gone", "good", "bad", "skips itself", "lost"}
	if got := judge(all, on, alone, reports); !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
