package upstream

import (
	"fmt"
	"testing"
)

// TestReadReport: specs that were not asked for are left out, and those that skip themselves are not.
func TestReadReport(t *testing.T) {
	reports, problems, err := readReport([]byte(`[{"SpecialSuiteFailureReasons": ["no nodes"], "SpecReports": [
		{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "Failure": {"Message": "late"}},
		{"LeafNodeType": "ReportAfterSuite", "State": "passed"},
		{"LeafNodeType": "It", "ContainerHierarchyTexts": ["a", "b"], "LeafNodeText": "c", "State": "passed"},
		{"LeafNodeType": "It", "LeafNodeText": "not asked for", "State": "skipped"},
		{"LeafNodeType": "It", "LeafNodeText": "skips itself", "State": "skipped", "Failure": {"Message": "one node"}},
		{"LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed", "Failure": {"Message": "why"}},
		{"LeafNodeType": "It", "LeafNodeText": "hangs", "State": "timedout"}
	]}]`))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", problems)
	for _, r := range reports {
		got += fmt.Sprintf(", %s %s %s", r.FullText(), r.State, r.Failure.Message)
	}
	want := `["no nodes" "SynchronizedBeforeSuite failed: late"], a b c passed , skips itself skipped one node, ` +
		`fails failed why, hangs timedout `
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, _, err := readReport([]byte("{")); err == nil {
		t.Error("half a report is read")
	}
}
