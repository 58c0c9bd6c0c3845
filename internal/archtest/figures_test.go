package archtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/docblock"
)

// figures are the rows of README's table. Each is taken from a row of a table in docs/performance.md that make bench
// makes; column is ours.
var figures = []struct{ title, benchmark, row, column string }{
	{"a watch event to one handler", "EventToHandler", "to one handler", "Flyball"},
	{"a watch event to ten handlers", "EventToHandler", "to ten handlers", "Flyball"},
	{"a key through the queue, 1,024 keys in turn", "Queue", "1,024 keys in turn", "Flyball"},
	{"the same with 4,096 keys in turn", "Queue", "4,096 keys in turn", "Flyball"},
	{"the same with 64 keys and metrics", "QueueMetrics", "64 keys in turn", "Flyball"},
	{"a delayed key, while a million are added", "QueueAddAfter", "a million keys", "Flyball"},
	{"memory retained for it", "QueueAddAfter", "a million keys, retained", "Flyball"},
	{"one key behind a storm of 100,000", "QueueWait", "behind 100,000 keys, median of five", "Flyball"},
	{
		"the same, ours with a fair queue", "QueueWait", "behind 100,000 keys, median of five",
		"Flyball, fair by namespace",
	},
	{"200 objects by an index", "Index", "ByIndex, 200 objects", "Flyball"},
	{"the same with the iterator", "Index", "ByIndex, 200 objects", "Flyball, iterator"},
	{"100,000 objects of the cache", "Index", "List, 100,000 objects", "Flyball"},
	{"the same with the iterator", "Index", "List, 100,000 objects", "Flyball, iterator"},
	{"100,000 realistic pods over HTTP into the cache: CPU time", "Pods", "100,000 pods, CPU time", "Flyball"},
	{"the same: peak heap", "Pods", "100,000 pods, peak heap", "Flyball"},
	{"the same: heap afterwards", "Pods", "100,000 pods, heap afterwards", "Flyball"},
	{
		"listing 10,000 again after a 410: CPU time", "Pods", "10,000 pods, listed again after a 410, CPU time",
		"Flyball",
	},
	{
		"10,000 updates a second to ten handlers: 99th percentile", "Updates",
		"10,000 pods, latency, 99th percentile", "Flyball",
	},
	{"memory of an idle informer: heap", "Idle", "an idle informer, heap", "Flyball"},
}

// figure is a figure, what else all turns gave, and how it compares.
var figure = regexp.MustCompile(`^([^(,]+?)(?: \([^)]*\))?(?:, ([0-9.]+×))?$`)

// TestFigures: the figures of README's table are those of docs/performance.md. "make figures" writes the table anew.
func TestFigures(t *testing.T) {
	want := []string{"| | client-go | Flyball | |", "|---|---|---|---|"}
	for _, f := range figures {
		theirs, ours := figureOf(t, f.benchmark, f.row, "client-go"), figureOf(t, f.benchmark, f.row, f.column)
		want = append(want, fmt.Sprintf("| %s | %s | %s | %s |", f.title, theirs[1], ours[1], ours[2]))
	}
	const name = "make figures"
	readme, table := filepath.Join(root, "README.md"), strings.Join(want, "\n")
	if *update {
		if err := docblock.Write(readme, name, table); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := docblock.Read(readme, name); err != nil || got != table {
		t.Errorf("README.md does not have the figures of docs/performance.md (%v). Run %s. Its table is\n%s\nwant\n%s",
			err, name, got, table)
	}
}

// figureOf returns what figure finds in a cell of the table of a benchmark.
func figureOf(t *testing.T, benchmark, row, column string) []string {
	t.Helper()
	text, err := docblock.Read(filepath.Join(root, "docs/performance.md"), "make bench BENCH="+benchmark)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if at < 0 {
			at = slices.Index(cells, column)
		} else if cells[0] == row && at < len(cells) {
			if found := figure.FindStringSubmatch(cells[at]); found != nil {
				return found
			}
		}
	}
	t.Fatalf("docs/performance.md has no figure of %s, %s, for %s", benchmark, row, column)
	return nil
}
