package others

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// row is one run of a suite.
type row struct {
	operator      operator
	server, parts string  // of sides and partsOfRuns
	load          float64 // of the machine, before the run
	start         time.Duration
	outcome       outcome
	cost          cost
}

// name is how exceptions name the row.
func (r row) name() string { return r.parts + " on " + r.server }

// place is how the table names the run.
func place(o operator, parts, server string) string {
	return fmt.Sprintf("| %s %s | %s | %s | ", o.name, o.version, parts, o.on(server))
}

// failure is how the table of failures names the run.
func failure(o operator, parts, server string) string {
	return fmt.Sprintf("| %s | %s | %s | ", o.name, parts, o.on(server))
}

// String is the row in Markdown, from its place on. The start of a server says nothing if it shared a core with more
// than one other process.
func (r row) String() string {
	start := "not measured"
	if r.load <= float64(2*runtime.NumCPU()) {
		start = fmt.Sprintf("%.2f s", r.start.Seconds())
	}
	return fmt.Sprintf("%d of %d | %s | %s | %d MB | %d MB | %d | %s, load %.2f |",
		r.outcome.passed, r.outcome.passed+len(r.outcome.failed), start, r.outcome.took.Round(time.Second),
		r.cost.memory>>10, r.outcome.memory>>10, r.cost.requests, time.Now().UTC().Format(time.DateOnly), r.load)
}

// table has the rows by their places.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[string]row{}
	}
	t.rows[place(r.operator, r.parts, r.server)] = r
}

// notRun is in the rows of runs that there were none of yet.
const notRun = "not run yet"

// text is the table in Markdown, with what failed. What was not run is as in old, the text of before.
func (t *table) text(old string) string {
	var rows, failures strings.Builder
	for _, o := range operators {
		for _, parts := range partsOfRuns {
			for _, server := range sides {
				place, failure := place(o, parts, server.name), failure(o, parts, server.name)
				r, run := t.rows[place]
				if run {
					fmt.Fprintf(&rows, "%s%s\n", place, r)
					for _, spec := range slices.Sorted(maps.Keys(r.outcome.failed)) {
						fmt.Fprintf(&failures, "%s%s |\n", failure, spec)
					}
				}
				if !run && !strings.Contains(old, place) {
					fmt.Fprintf(&rows, "%s%s |  |  |  |  |  |  |\n", place, notRun)
				}
				for line := range strings.Lines(old + "\n") {
					switch {
					case run:
					case strings.HasPrefix(line, place):
						rows.WriteString(line)
					case strings.HasPrefix(line, failure):
						failures.WriteString(line)
					}
				}
			}
		}
	}
	return fmt.Sprintf("%d cores, %s, kube-apiserver %s. The load is the machine's before the run.\n\n",
		runtime.NumCPU(), runtime.Version(), upstream.Version) +
		"| operator | parts | server | specs that pass | start of the server | suite | memory of the server | " +
		"memory of the suite | requests | run |\n|---|---|---|---|---|---|---|---|---|---|\n" +
		rows.String() + "\n| operator | parts | server | failed spec |\n|---|---|---|---|\n" + failures.String()
}

// TestTableKeepsOtherRows: a run of one operator leaves the rows of the others as they are.
func TestTableKeepsOtherRows(t *testing.T) {
	var all, one table
	for i, o := range operators {
		for _, parts := range partsOfRuns {
			for _, server := range sides {
				r := row{operator: o, server: server.name, parts: parts, load: 1}
				r.outcome = outcome{passed: 7, failed: map[string]string{"old": "x"}}
				all.add(r)
				if i == 0 {
					r.outcome.failed = map[string]string{"new": "x"}
					one.add(r)
				}
			}
		}
	}
	runs := len(partsOfRuns) * len(sides)
	text := one.text(all.text(""))
	for what, want := range map[string]int{
		"| new |": runs, "| old |": runs * (len(operators) - 1), "| 7 of 8 |": runs * len(operators),
	} {
		if n := strings.Count(text, what); n != want {
			t.Errorf("%q stands there %d times, want %d:\n%s", what, n, want, text)
		}
	}
}

// TestTableIsWhole: the table in docs/localapi.md has a row for every run that there is, with its result or with the
// note that it was not run.
func TestTableIsWhole(t *testing.T) {
	text, err := docblock.Read("../../docs/localapi.md", "make test-operators")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operators {
		for _, parts := range partsOfRuns {
			for _, server := range sides {
				row := place(o, parts, server.name)
				_, rest, found := strings.Cut(text, row)
				if strings.HasPrefix(rest, notRun) {
					continue
				}
				var passed, all int
				if _, err := fmt.Sscanf(rest, "%d of %d |", &passed, &all); !found || err != nil ||
					all-passed > len(o.known) {
					t.Errorf("no row %q with a result of which at most %d specs fail: %q",
						row, len(o.known), rest[:min(len(rest), 80)])
				}
			}
		}
	}
}
