package integration

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/testjson"
)

// exception is a reason for tests to fail.
type exception struct {
	// Reason is the text for the table.
	Reason string
	// Folder is the package's, below test/integration.
	Folder string
	// Tests are full names, or patterns as those of [path.Match] in which * stands for a part between two slashes.
	Tests []string
	// Sometimes is for tests that fail now and then with Kubernetes' own parts, too. They may pass.
	Sometimes bool
}

func readExceptions(t *testing.T) (list []exception) {
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

// find returns the exception for a test, and nil if there is none.
func find(list []exception, folder, test string) *exception {
	i := slices.IndexFunc(list, func(e exception) bool {
		return e.Folder == folder &&
			slices.ContainsFunc(e.Tests, func(pattern string) bool { return matches(pattern, test) })
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

func matches(pattern, test string) bool {
	ok, _ := path.Match(pattern, test)
	return ok || pattern == test
}

// logLine matches a line that klog wrote.
var logLine = regexp.MustCompile(`(?m)^.*\b[IWE]\d{4} \d\d:\d\d:.*\n`)

// judge returns what is wrong with the tests of a folder: those that fail and are not expected to, and the patterns of
// exceptions that no test fails.
func judge(list []exception, folder string, tests []testjson.Test) (problems []string) {
	for _, test := range tests {
		if test.Outcome == "fail" && find(list, folder, test.Name) == nil {
			said := logLine.ReplaceAllString(test.Output, "")
			problems = append(problems, fmt.Sprintf("%s fails:\n%s", test.Name, said[max(0, len(said)-4000):]))
		}
	}
	for _, e := range list {
		for _, pattern := range e.Tests {
			if e.Folder == folder && !e.Sometimes && !slices.ContainsFunc(tests, func(test testjson.Test) bool {
				return test.Outcome == "fail" && matches(pattern, test.Name)
			}) {
				problems = append(problems,
					fmt.Sprintf("no test that matches %q fails: the exception is to be removed", pattern))
			}
		}
	}
	return problems
}

// TestJudge: a list is checked both ways.
func TestJudge(t *testing.T) {
	list := []exception{
		{Folder: "a", Tests: []string{"TestListed", "TestPassing", "TestParts/*"}},
		{Folder: "a", Tests: []string{"TestFlaky"}, Sometimes: true},
		{Folder: "b", Tests: []string{"TestElsewhere"}},
	}
	tests := []testjson.Test{
		{Name: "TestListed", Outcome: "fail"},
		{Name: "TestPassing", Outcome: "pass"},
		{Name: "TestParts/one", Outcome: "fail"},
		{Name: "TestFlaky", Outcome: "pass"},
		{Name: "TestElsewhere", Outcome: "fail", Output: "why"},
	}
	want := []string{
		"TestElsewhere fails:\nwhy",
		`no test that matches "TestPassing" fails: the exception is to be removed`,
	}
	if got := judge(list, "a", tests); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
