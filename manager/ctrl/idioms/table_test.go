// Package idioms_test has idioms of controller-runtime, written from its examples, kubebuilder's book and operators of
// others. compile_test.go has those that compile with our packages as they are written, after their imports were
// changed. They also compile with controller-runtime, in interop/controllerruntime/idioms. There, listed_test.go has
// those that do not compile with ours, and what to write instead.
package idioms_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/docblock"
)

var update = flag.Bool("update", false, "write compile_test.go and the table of idioms anew")

const (
	theirs = "../../../interop/controllerruntime/idioms/"
	page   = "../../../docs/coming-from-controller-runtime.md"
	block  = "TestIdioms"
)

// places has the packages of controller-runtime whose names are not in the package of the same name below manager/ctrl.
var places = map[string]string{
	"":                               "manager/ctrl",
	"/pkg/builder":                   "manager/builder",
	"/pkg/client":                    "client",
	"/pkg/client/apiutil":            "manager/ctrl/apiutil",
	"/pkg/controller/controllerutil": "client/controllerutil",
	"/pkg/conversion":                "manager/webhook/conversion",
	"/pkg/envtest":                   "localapi/envtest",
	"/pkg/event":                     "reconcile/event",
	"/pkg/webhook":                   "manager/webhook",
	"/pkg/webhook/admission":         "manager/webhook/admission",
	"/pkg/webhook/conversion":        "manager/webhook/conversion",
}

var (
	importLine = regexp.MustCompile(`"sigs\.k8s\.io/controller-runtime([^"]*)"`)
	group      = regexp.MustCompile(`^// (Program|Builder|Reconciler|Client: read|Client: write|controllerutil|` +
		`Events and predicates|Handlers and sources|Metrics|Webhooks|Tests)$`)
	// idiom is the first line of one. Other methods complete the type of one.
	idiom = regexp.MustCompile(`^(func _|func \(r \*Reconciler\)|var _|const owner|` +
		`func \((c \*counting|none|onlySpec)\) Create|func \(a \*annotator\))`)
	row = regexp.MustCompile(`^(.+?): write (.+)$`)
)

// TestIdioms changes the imports of the idioms that compile with controller-runtime, and compares them with those here.
// It counts them and compares the table in the documentation.
func TestIdioms(t *testing.T) {
	changed := importLine.ReplaceAllStringFunc(read(t, theirs+"compile_test.go"), func(line string) string {
		path := importLine.FindStringSubmatch(line)[1]
		return `"github.com/flyball-dev/flyball/` +
			cmp.Or(places[path], "manager/ctrl"+strings.TrimPrefix(path, "/pkg")) + `"`
	})
	formatted, err := format.Source([]byte(changed)) // sorts the imports
	if err != nil {
		t.Fatal(err)
	}
	same(t, "compile_test.go", string(formatted))

	compile, listed := counts(changed), counts(read(t, theirs+"listed_test.go"))
	var table, rows strings.Builder
	all, fit := 0, 0
	for _, name := range compile.groups {
		fmt.Fprintf(&table, "| %s | %d | %d |\n", name, compile.idioms[name], listed.idioms[name])
		all, fit = all+compile.idioms[name]+listed.idioms[name], fit+compile.idioms[name]
	}
	var doc []string // of the function that follows
	for _, line := range strings.Split(read(t, theirs+"listed_test.go"), "\n") {
		if comment, found := strings.CutPrefix(line, "// "); found {
			doc = append(doc, comment)
			continue
		}
		if m := row.FindStringSubmatch(strings.Join(doc, " ")); m != nil {
			fmt.Fprintf(&rows, "| %s | %s |\n", m[1], m[2])
		}
		doc = nil
	}
	if missing := all - fit - strings.Count(rows.String(), "\n"); missing != 0 {
		t.Errorf("%d idioms neither compile nor have a row that tells what to write", missing)
	}
	if all < 150 || fit < 130 {
		t.Errorf("%d idioms, of which %d compile; want 150, and 130", all, fit)
	}
	text := fmt.Sprintf("| idioms | compile | listed | missing |\n|---|---|---|---|\n%s| all %d | %d | %d | 0 |\n\n"+
		"| idiom | write |\n|---|---|\n%s",
		strings.ReplaceAll(table.String(), " |\n", " | 0 |\n"), all, fit, all-fit, strings.TrimSpace(rows.String()))
	if *update {
		if err := docblock.Write(page, block, text); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := docblock.Read(page, block); err != nil || got != text {
		t.Errorf("%s has not the table of the idioms (%v): run this test with -update", page, err)
	}
}

// counted has the groups of a file in order, and how many idioms each has.
type counted struct {
	groups []string
	idioms map[string]int
}

func counts(text string) counted {
	c := counted{idioms: map[string]int{}}
	for _, line := range strings.Split(text, "\n") {
		if m := group.FindStringSubmatch(line); m != nil {
			c.groups = append(c.groups, m[1])
		} else if idiom.MatchString(line) {
			c.idioms[c.groups[len(c.groups)-1]]++
		}
	}
	return c
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same compares a file with the text that it should have, and writes it if the flag update is set.
func same(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, path) != want {
		t.Errorf("%s is not what the idioms of controller-runtime make: run this test with -update", path)
	}
}
