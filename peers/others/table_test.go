package others

import (
	"cmp"
	"flag"
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
	server, parts string
	start         time.Duration
	outcome       outcome
	cost          cost
}

// name is how exceptions name the row.
func (r row) name() string { return r.parts + " on " + r.server }

// table has the rows, in the order in which they came.
type table struct {
	mu   sync.Mutex
	rows []row
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

// String is the table in Markdown. The arguments are the load of the machine before and after the runs.
func (t *table) String(before, after string) string {
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.place(), b.place()) })
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores, %s, kube-apiserver %s, up to %s programs at once; ",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), upstream.Version,
		flag.Lookup("test.parallel").Value)
	fmt.Fprintf(&b, "the machine's load was %s before the runs and %s after them.\n\n", before, after)
	b.WriteString(
		"| operator | parts | server | specs that pass | start of the server | suite | memory of the server | memory " +
			"of the suite | requests |\n",
	)
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s %s | %s | %s | %d of %d | %.2f s | %s | %d MB | %d MB | %d |\n",
			r.operator.name, r.operator.version, r.parts, r.server,
			r.outcome.passed, r.outcome.passed+len(r.outcome.failed), r.start.Seconds(),
			r.outcome.took.Round(time.Second),
			r.cost.memory>>10, r.outcome.memory>>10, r.cost.requests)
	}
	b.WriteString("\nFailed:\n\n")
	for _, r := range t.rows {
		for _, spec := range slices.Sorted(maps.Keys(r.outcome.failed)) {
			fmt.Fprintf(&b, "- %s, %s on %s: %s\n", r.operator.name, r.parts, r.server, spec)
		}
	}
	return b.String()
}

// place is a row's place in the table.
func (r row) place() int {
	operator := slices.IndexFunc(operators, func(o operator) bool { return o.name == r.operator.name })
	side := 0
	for i := range sides {
		if r.operator.on(sides[i].name) == r.server {
			side = i
		}
	}
	return (operator*len(partsOfRuns)+slices.Index(partsOfRuns, r.parts))*len(sides) + side
}

// TestTableIsWhole: the table in docs/localapi.md has a row for every run that there is.
func TestTableIsWhole(t *testing.T) {
	text, err := docblock.Read("../../docs/localapi.md", "make test-operators")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operators {
		for _, parts := range partsOfRuns {
			for _, server := range sides {
				row := fmt.Sprintf("| %s %s | %s | %s | ", o.name, o.version, parts, o.on(server.name))
				_, rest, found := strings.Cut(text, row)
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
