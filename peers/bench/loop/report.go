package loop

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/peers/bench/turns"
)

// Plan is a work with what its rows say.
type Plan struct {
	Work
	Title string
	Rows  []Row
}

// Row is a figure of a result.
type Row struct {
	Title, Unit string
	Of          func(w Work, r *Result) float64
}

// The rows.
var (
	wall  = Row{"time until all is done", "ms", func(_ Work, r *Result) float64 { return r.Wall * 1e3 }}
	first = Row{"time until the first reconcile", "ms", func(_ Work, r *Result) float64 { return r.First * 1e3 }}

	cpu         = Row{"CPU time", "ms", func(_ Work, r *Result) float64 { return r.CPU * 1e3 }}
	cpuOfObject = Row{"CPU time of an object", "µs", perObject(func(r *Result) float64 { return r.CPU * 1e6 })}
	cpuOfRun    = Row{
		"CPU time of a reconcile", "µs",
		func(_ Work, r *Result) float64 { return r.CPU * 1e6 / float64(r.Reconciles) },
	}

	allocs    = Row{"allocations of an object", "", perObject(func(r *Result) float64 { return float64(r.Allocs) })}
	allocated = Row{
		"allocated for an object", "KB",
		perObject(func(r *Result) float64 { return float64(r.Allocated) / 1e3 }),
	}
	resident = Row{"peak resident memory", "MB", func(_ Work, r *Result) float64 { return float64(r.Resident) / 1e6 }}
	heap     = Row{"heap after a collection", "MB", func(_ Work, r *Result) float64 { return float64(r.Heap) / 1e6 }}

	requests   = Row{"requests", "", func(_ Work, r *Result) float64 { return float64(r.Requests) }}
	reconciles = Row{"reconciles", "", func(_ Work, r *Result) float64 { return float64(r.Reconciles) }}
	p50        = Row{"write to reconcile, median", "ms", func(_ Work, r *Result) float64 { return r.P50 * 1e3 }}
	p99        = Row{
		"write to reconcile, 99th percentile", "ms",
		func(_ Work, r *Result) float64 { return r.P99 * 1e3 },
	}
)

func perObject(of func(*Result) float64) func(Work, *Result) float64 {
	return func(w Work, r *Result) float64 { return of(r) / float64(w.Objects) }
}

// Plans are what is measured, scaled by a factor: 1 is the full size.
func Plans(scale float64) []Plan {
	size := func(n int) int { return max(1, int(float64(n)*scale)) }
	var plans []Plan
	for _, workers := range []int{1, 16} {
		plans = append(plans, Plan{
			Work{Kind: Feed, Objects: size(200_000), Workers: workers},
			"reconcile %d keys, each once, and do nothing; workers: %d",
			[]Row{cpuOfRun, allocs, allocated},
		})
	}
	for _, workers := range []int{1, 8, 64} {
		plans = append(plans, Plan{
			Work{Kind: Patch, Objects: size(2_000), Workers: workers},
			"patch %d ConfigMaps, each once; workers: %d",
			[]Row{cpuOfObject, allocs, allocated, wall, requests},
		})
	}
	for _, n := range []int{1, 1_000, 100_000} {
		plans = append(plans, Plan{
			Work{Kind: Start, Objects: min(n, size(n)), Workers: 1},
			"start, and reconcile %d ConfigMaps; workers: %d",
			[]Row{first, wall, cpu, resident, heap, requests},
		})
	}
	return append(plans, Plan{
		Work{Kind: Storm, Objects: size(500), Workers: 4},
		"%d ConfigMaps are created, updated three times and deleted, 1,000 writes a second; workers: %d",
		[]Row{cpu, reconciles, p50, p99, resident},
	}, Plan{
		Work{Kind: Steady, Objects: size(10_000), Workers: 4, Seconds: 5},
		"five seconds with %d ConfigMaps and a resync every second; workers: %d",
		[]Row{cpu, reconciles, cpuOfRun, resident, heap},
	})
}

// Table returns the rows of a plan. results has those of each program.
func (p Plan) Table(results [][]*Result) string {
	var names []string
	for _, program := range Programs {
		names = append(names, program.System)
	}
	var rows []turns.Row
	for _, row := range p.Rows {
		title := strings.TrimSuffix(row.Title+", "+row.Unit, ", ")
		rows = append(rows, turns.RowOf(title, results, func(r *Result) float64 { return row.Of(p.Work, r) }))
	}
	return turns.Table(fmt.Sprintf(p.Title, p.Objects, p.Workers), names, rows)
}
