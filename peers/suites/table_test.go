package suites

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/docblock"
)

// table has the results.
type table struct {
	rows []row
}

type row struct {
	run
	result *result
	took   time.Duration
}

func (t *table) add(r run, got *result, took time.Duration) {
	t.rows = append(t.rows, row{r, got, took})
}

// baseline is the result of the unmodified suite on kube-apiserver.
func (t *table) baseline(s *suite) *result {
	for _, r := range t.rows {
		if r.suite == s && r.server == apiserver && r.parts == theirs {
			return r.result
		}
	}
	return nil
}

// cells are the results of a suite with a set of parts, by server.
type cells struct {
	suite, parts string
	by           map[string]string
}

// lines are the cells of the rows that want chooses, by suite and set of parts.
func (t *table) lines(want func(run) bool) []cells {
	var lines []cells
	for _, r := range t.rows {
		if !want(r.run) {
			continue
		}
		i := slices.IndexFunc(lines, func(c cells) bool { return c.suite == r.suite.path && c.parts == r.parts })
		if i < 0 {
			lines, i = append(lines, cells{r.suite.path, r.parts, map[string]string{}}), len(lines)
		}
		lines[i].by[r.server] = fmt.Sprintf("%d of %d, %.0f s", len(r.result.passed), r.result.all(), r.took.Seconds())
	}
	slices.SortStableFunc(lines, func(a, b cells) int { return cmp.Compare(a.suite, b.suite) })
	return lines
}

// unmodified is the table of the suites with controller-runtime's own parts, with what fails and why.
func (t *table) unmodified(known exceptions) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| suite | %s | %s | what fails, and why |\n|---|---|---|---|\n", apiserver, local)
	for _, c := range t.lines(func(r run) bool { return r.parts == theirs }) {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", c.suite, c.by[apiserver], c.by[local], known.reasons(t.rows, c))
	}
	return out.String()
}

// swapped is the table of the suites with our parts.
func (t *table) swapped(known exceptions) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| suite | parts | %s | %s | what fails, and why |\n|---|---|---|---|---|\n", apiserver, local)
	for _, c := range t.lines(func(r run) bool { return r.parts != theirs }) {
		fmt.Fprintf(&out, "| %s | `%s` | %s | %s | %s |\n", c.suite, c.parts, c.by[apiserver], c.by[local],
			known.reasons(t.rows, c))
	}
	return out.String()
}

// reasons are those of the specs that fail in a line. One that fails and is not expected to is named itself.
func (list exceptions) reasons(rows []row, c cells) string {
	var why []string
	for _, r := range rows {
		if r.suite.path != c.suite || r.parts != c.parts {
			continue
		}
		for _, spec := range slices.Sorted(maps.Keys(r.result.failed)) {
			reason := "not expected: " + spec
			for _, e := range list {
				if e.holds(r.run) && slices.Contains(e.Specs, spec) {
					reason = e.Reason
				}
			}
			if reason = r.server + ": " + reason; !slices.Contains(why, reason) {
				why = append(why, reason)
			}
		}
	}
	return strings.Join(why, "; ")
}

// write puts the tables of a whole run into the documents.
func (t *table) write(known exceptions, heading string) error {
	return errors.Join(
		docblock.Write("../../docs/localapi.md", "make test-suites", heading+t.unmodified(known)),
		docblock.Write("../../docs/swap-in.md", "make test-suites", heading+t.swapped(known)),
	)
}

// heading states what the tables were made with. The arguments are the load of the machine before and after the runs.
func heading(before, after string) string {
	return fmt.Sprintf("%s, controller-runtime v0.25.2, kube-apiserver v1.37.2, %d cores, %s.\n"+
		"The machine's load was %s before the runs and %s after them.\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), before, after)
}

// load is the number of processes that wanted to run in the last minute.
func load(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// TestTablesAreWhole: the tables in the documents have a result for every run that there is, and as many failures as
// are expected of it.
func TestTablesAreWhole(t *testing.T) {
	known := readExceptions(t)
	for _, r := range runs(true) {
		file, prefix := "../../docs/swap-in.md", fmt.Sprintf("| %s | `%s` | ", r.suite.path, r.parts)
		if r.parts == theirs {
			file, prefix = "../../docs/localapi.md", fmt.Sprintf("| %s | ", r.suite.path)
		}
		text, err := docblock.Read(file, "make test-suites")
		if err != nil {
			t.Fatal(err)
		}
		_, cells, found := strings.Cut("\n"+text, "\n"+prefix)
		if !found {
			t.Errorf("%s has no line for %s", file, r)
			continue
		}
		cell, rest, _ := strings.Cut(cells, " | ")
		if r.server == local {
			cell, _, _ = strings.Cut(rest, " | ")
		}
		var passed, all int
		if _, err := fmt.Sscanf(cell, "%d of %d,", &passed, &all); err != nil {
			t.Errorf("%s has no result for %s: %q", file, r, cell)
			continue
		}
		if at, most := known.failures(r); all-passed < at || (all-passed > most && !known.unprepared(r)) {
			t.Errorf("%s says %q for %s, of which %d to %d specs fail: make test-suites writes it anew", file, cell, r,
				at, most)
		}
	}
}

// failures is how many specs of a run fail at least and at most.
func (list exceptions) failures(r run) (at, most int) {
	for _, e := range list {
		if !e.holds(r) {
			continue
		}
		most += len(e.Specs)
		if !e.Sometimes {
			at += len(e.Specs)
		}
	}
	return at, most
}

// unprepared reports whether a run fails as a whole, because what prepares it fails.
func (list exceptions) unprepared(r run) bool {
	return slices.ContainsFunc(list,
		func(e exception) bool { return e.holds(r) && slices.Contains(e.Specs, "[BeforeSuite]") })
}
