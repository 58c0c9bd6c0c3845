package suites

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// exception is a reason for specs to fail.
type exception struct {
	// Reason is a sentence, and Listed the document, below the repository's root, that has it word by word.
	Reason, Listed string
	// Suite is the path of the package. Servers and Parts are those with which the specs fail; none: all.
	Suite          string
	Servers, Parts []string
	// Specs are the full texts.
	Specs []string
	// Sometimes is for specs that need what may be missing, or fail now and then with controller-runtime's own parts on
	// kube-apiserver, too. They may pass.
	Sometimes bool
}

func (e *exception) holds(r run) bool {
	return e.Suite == r.suite.path && (len(e.Servers) == 0 || slices.Contains(e.Servers, r.server)) &&
		(len(e.Parts) == 0 || slices.Contains(e.Parts, r.parts))
}

type exceptions []exception

func readExceptions(t *testing.T) exceptions {
	t.Helper()
	text, err := os.ReadFile("testdata/exceptions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list exceptions
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// judge returns what is wrong with a result: specs that fail and are not expected to, or that pass and are, or that
// are not there. The baseline is the result of the unmodified suite on kube-apiserver; nil: not known.
func (list exceptions) judge(r run, got, baseline *result) []string {
	var problems []string
	expected := map[string]bool{}
	for _, e := range list {
		if !e.holds(r) {
			continue
		}
		for _, spec := range e.Specs {
			expected[spec] = true
			switch {
			case got.fails(spec):
			case !e.Sometimes && !got.has(spec) && !got.fails(died):
				problems = append(problems,
					fmt.Sprintf("%s has no spec %q that runs: the exception is to be removed", r, spec))
			case !e.Sometimes && got.has(spec):
				problems = append(problems, fmt.Sprintf("%s passes %q: the exception is to be removed", r, spec))
			}
		}
	}
	for _, spec := range slices.Sorted(maps.Keys(got.failed)) {
		if expected[spec] {
			continue
		}
		also := ""
		if baseline != nil && baseline.fails(spec) {
			also = " (and so does the unmodified suite on kube-apiserver)"
		}
		problems = append(problems, fmt.Sprintf("%s fails %q%s:\n%s", r, spec, also, got.failed[spec]))
	}
	return problems
}

// TestExceptionsAreListed: every exception is for runs that exist, and its reason stands in the document that it names.
func TestExceptionsAreListed(t *testing.T) {
	for _, e := range readExceptions(t) {
		if !slices.ContainsFunc(runs(true), e.holds) {
			t.Errorf("no run is meant by %+v", e)
		}
		text, err := os.ReadFile(filepath.Join("../..", e.Listed))
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(string(text)), " ") // A reason may stand on two lines.
		if e.Reason == "" || !strings.Contains(words, e.Reason) {
			t.Errorf("%s does not have the reason %q", e.Listed, e.Reason)
		}
	}
}

// TestJudge: a list is checked both ways.
func TestJudge(t *testing.T) {
	s := &suite{path: "cache"}
	r := run{suite: s, server: local, parts: theirs}
	got := &result{passed: map[string]bool{"a": true, "b": true}, failed: map[string]string{"c": "why c", "d": "why d"}}
	list := exceptions{
		{Suite: "cache", Specs: []string{"b", "c", "e"}},
		{Suite: "cache", Specs: []string{"a"}, Sometimes: true},
		{Suite: "cache", Servers: []string{apiserver}, Specs: []string{"d"}},
		{Suite: "client", Specs: []string{"d"}},
	}
	baseline := &result{failed: map[string]string{"d": "the same"}}
	want := []string{
		`cache on localapi with theirs passes "b": the exception is to be removed`,
		`cache on localapi with theirs has no spec "e" that runs: the exception is to be removed`,
		"cache on localapi with theirs fails \"d\" (and so does the unmodified suite on kube-apiserver):\nwhy d",
	}
	if problems := list.judge(r, got, baseline); !slices.Equal(problems, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(problems, "\n"), strings.Join(want, "\n"))
	}
}
