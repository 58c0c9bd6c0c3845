// Package testjson reads what go test -json reports.
package testjson

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Test is a test that ran. Its Outcome is pass, fail or skip.
type Test struct {
	Name, Outcome, Output string
}

// Read returns the tests in the order of their start, and all that was printed. A test with subtests is represented by
// its subtests, unless it fails and none of them does. A test without an end was running when the process died: it
// failed.
func Read(events io.Reader) (tests []Test, output string, err error) {
	type test struct {
		Test
		out                 strings.Builder
		parent, childFailed bool
	}
	byName := map[string]*test{}
	var order []*test
	var all strings.Builder
	for d := json.NewDecoder(events); d.More(); {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); err != nil {
			return nil, all.String(), fmt.Errorf("decode an event of the tests: %w", err)
		}
		all.WriteString(e.Output)
		if e.Test == "" {
			continue
		}
		t := byName[e.Test]
		if t == nil {
			t = &test{Test: Test{Name: e.Test, Outcome: "fail"}}
			byName[e.Test] = t
			order = append(order, t)
		}
		t.out.WriteString(e.Output)
		switch e.Action {
		case "pass", "skip", "fail":
			t.Outcome = e.Action
		}
	}
	for _, t := range order {
		for i, c := range t.Name {
			if parent := byName[t.Name[:i]]; c == '/' && parent != nil {
				parent.parent = true
				parent.childFailed = parent.childFailed || t.Outcome == "fail"
			}
		}
	}
	for _, t := range order {
		if t.parent && (t.Outcome != "fail" || t.childFailed) {
			continue
		}
		t.Output = t.out.String()
		tests = append(tests, t.Test)
	}
	return tests, all.String(), nil
}
