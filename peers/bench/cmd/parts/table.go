package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"

	"github.com/flyball-dev/flyball/peers/bench/turns"
)

// table is what becomes of one benchmark. Its sub-benchmarks are named row/system.
type table struct {
	benchmark string
	// title is the head of the first column.
	title string
	// systems are the columns. The others are compared with the first. Not every row needs all of them.
	systems []string
	// benchtime is as the flag of go test.
	benchtime string
	// metrics are what the rows show, each in a row of its own.
	metrics []metric
}

// binary is the name of the test binary that has the benchmark.
func (t table) binary() string {
	if t.benchmark == "Decode" {
		return "lean.test"
	}
	return "bench.test"
}

// metric is a unit of the benchmark, as package benchfmt reads it.
type metric struct {
	unit string
	// what follows the name of the row; symbol follows each figure.
	what, symbol string
}

var (
	perOperation = metric{"sec/op", "", "s"}
	perKey       = metric{"sec/key", "", "s"}
	allocated    = metric{"B/op", ", allocated", "B"}
	allocations  = metric{"allocs/op", ", allocations", ""}
)

var tables = []table{
	{
		"Queue", "Add, Get and Done",
		[]string{"client-go", "Flyball", "Flyball, queueing time"},
		"300ms",
		[]metric{perOperation},
	},
	{
		"QueueMetrics", "Add, Get and Done, with metrics",
		[]string{"client-go", "Flyball", "Flyball, causes", "controller-runtime"},
		"300ms",
		[]metric{perOperation},
	},
	{
		"QueueWorkers", "a key, from one producer to workers that do nothing",
		[]string{"client-go", "Flyball", "Flyball, queueing time", "controller-runtime"},
		"300ms",
		[]metric{perKey},
	},
	{
		"QueueAddAfter", "a delayed key, while a million are added",
		[]string{"client-go", "Flyball"},
		"1x",
		[]metric{perKey, {"B-allocated/key", ", allocated", "B"}, {"B-retained/key", ", retained", "B"}},
	},
	{
		"QueueWait", "the wait of one key", []string{
			"client-go", "Flyball", "Flyball, fair by namespace", "Flyball, priority 10", "controller-runtime",
			"controller-runtime, priority 10",
		}, "5x", []metric{{"p50-sec", ", median of five", "s"}, {"longest-sec", ", longest of five", "s"}},
	},
	{
		"EventToHandler", "a watch event, through the cache",
		[]string{"client-go", "Flyball"},
		"500ms",
		[]metric{perOperation, allocated, allocations},
	},
	{
		"InitialSync", "from decoded objects to the handler",
		[]string{"client-go", "Flyball"},
		"5x",
		[]metric{perOperation, allocated, allocations},
	},
	{
		"Idle", "200 informers, each",
		[]string{"client-go", "Flyball"},
		"1x",
		[]metric{{"goroutines", ", goroutines", ""}, {"heap-B", ", heap", "B"}, {"stack-B", ", stacks", "B"}},
	},
	{
		"Index", "a cache of 100,000 objects",
		[]string{"client-go", "Flyball", "Flyball, iterator"},
		"300ms",
		[]metric{perOperation},
	},
	{
		"Pods", "realistic pods over HTTP", []string{"client-go", "Flyball"}, "1x", []metric{
			{"cpu-sec", ", CPU time", "s"},
			{"peak-B", ", peak heap", "B"},
			{"heap-B", ", heap afterwards", "B"},
			{"again-cpu-sec", ", listed again after a 410, CPU time", "s"},
			{"again-over", ", listed again after a 410, peak heap divided by the heap before", ""},
		},
	},
	{
		"Decode", "decoding a list, a pod", []string{"client-go", "Flyball", "Flyball, standard"}, "3x", []metric{
			{"sec/pod", ", CPU time", "s"}, {"B/pod", ", allocated", "B"}, {"allocs/pod", ", allocations", ""},
		},
	},
	{
		"Updates", "updates over HTTP, 10,000 a second to ten handlers",
		[]string{"client-go", "Flyball"},
		"1x",
		[]metric{
			{"cpu-sec", ", CPU time of one", "s"},
			{"p50-sec", ", latency, median", "s"},
			{"p99-sec", ", latency, 99th percentile", "s"},
			{"peak-B", ", peak heap", "B"},
		},
	},
}

// results are what the processes of one table printed.
type results struct {
	// rows are in the order in which they were first seen.
	rows []string
	// values are those of all turns.
	values map[cell][]float64
}

type cell struct{ row, system, unit string }

func (a *results) add(r *benchfmt.Result, system string) {
	_, parts := r.Name.Parts()
	row := strings.ReplaceAll(strings.TrimPrefix(string(parts[0]), "/"), "_", " ")
	if !slices.Contains(a.rows, row) {
		a.rows = append(a.rows, row)
	}
	if a.values == nil {
		a.values = map[cell][]float64{}
	}
	for _, v := range r.Values {
		c := cell{row, system, v.Unit}
		a.values[c] = append(a.values[c], v.Value)
	}
}

// text returns the table in Markdown.
func (t table) text(a *results) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s | %s |\n|---|%s\n", t.title, strings.Join(t.systems, " | "),
		strings.Repeat("---|", len(t.systems)))
	for _, row := range a.rows {
		for _, m := range t.metrics {
			first := a.values[cell{row, t.systems[0], m.unit}]
			if len(first) == 0 {
				continue
			}
			fmt.Fprintf(&out, "| %s%s |", row, m.what)
			for i, system := range t.systems {
				values := a.values[cell{row, system, m.unit}]
				out.WriteString(m.figure(values))
				if from, to := turns.Median(first), turns.Median(values); i > 0 && from > 0 && to > 0 {
					fmt.Fprintf(&out, ", %s×", turns.Figure(from/to))
				}
				out.WriteString(" |")
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

// figure returns the median of all turns, with the lowest and the highest.
func (m metric) figure(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	scale := benchunit.CommonScale([]float64{turns.Median(values)}, benchunit.Decimal)
	show := func(v float64) string { return turns.Figure(v / scale.Factor) }
	unit := strings.TrimRight(" "+scale.Prefix+m.symbol, " ")
	median, least, most := show(turns.Median(values)), show(slices.Min(values)), show(slices.Max(values))
	if least == most {
		return " " + median + unit
	}
	return fmt.Sprintf(" %s%s (%s–%s)", median, unit, least, most)
}
