package lean

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// Print writes the results as tables, each system beside client-go in the same run.
func Print(out io.Writer, all []*Result) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w,
		"resource\tobjects\thandlers\tsystem\twall s\tCPU s\tCPU ×\tpeak MB\tpeak ratio\tsteady MB\tsteady "+
			"ratio\tsteady B/object\talloc MB\tmallocs/object\tGCs\tpause max ms\t")
	for _, r := range all {
		c := peer(all, r)
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%.1f\t%.2f\t%d\t%.0f\t%d\t%d\t%.2f\t\n",
			r.Resource, r.Objects, r.Handlers, r.System, r.SyncWall, r.SyncCPU, c.SyncCPU/r.SyncCPU,
			mb(r.SyncPeak), ratio(r.SyncPeak, c.SyncPeak), mb(r.Steady), ratio(r.Steady, c.Steady),
			r.Steady/uint64(r.Objects), mb(r.Allocated), r.Mallocs/uint64(r.Objects), r.GCs, 1e3*r.PauseMax)
	}
	_ = w.Flush()
	fmt.Fprintln(w,
		"\nupdates\thandlers\tsystem\ta second\tCPU µs/update\tp50 ms\tp99 ms\talloc B/update\tpeak MB\tpause max ms\t")
	for _, r := range all {
		for _, u := range r.Updates {
			n := float64(u.Rate * u.Seconds)
			fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.1f\t%.2f\t%.2f\t%.0f\t%.1f\t%.2f\t\n", r.Resource, r.Handlers, r.System,
				u.Rate, 1e6*u.CPU/n, 1e3*u.P50, 1e3*u.P99, float64(u.Allocated)/n, mb(u.Peak), 1e3*u.PauseMax)
		}
	}
	_ = w.Flush()
	fmt.Fprintln(w, "\nrelist\tobjects\tsystem\twall s\tCPU s\tpeak/steady\talloc MB\thandler calls\t")
	for _, r := range all {
		if l := r.Relist; l != nil {
			fmt.Fprintf(w, "%s\t%d\t%s\t%.2f\t%.2f\t%.3f\t%.1f\t%d\t\n", r.Resource, r.Objects, r.System, l.Wall,
				l.CPU, l.Over, mb(l.Allocated), l.Heard)
		}
	}
	_ = w.Flush()
}

// peer is client-go's result in the same circumstances; r itself when there is none.
func peer(all []*Result, r *Result) *Result {
	for _, c := range all {
		if c.System == "clientgo" && c.Resource == r.Resource && c.Objects == r.Objects && c.Handlers == r.Handlers {
			return c
		}
	}
	return r
}

func mb(n uint64) float64 { return float64(n) / 1e6 }

func ratio(a, b uint64) float64 { return float64(a) / float64(b) }

// resultsFile is the file of a folder that has the results.
const resultsFile = "informer-results.json"

// Read reads what [Write] wrote into a folder.
func Read(folder string) (all []*Result, err error) {
	data, err := os.ReadFile(filepath.Join(folder, resultsFile))
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}

// Write writes the results, and the charts of what was measured, into a folder.
func Write(folder string, all []*Result) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, resultsFile), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for _, c := range charts {
		for resource := range Resources {
			var bars []bar
			for _, r := range all {
				if v, ok := c.value(r); ok && r.Resource == resource {
					bars = append(bars, bar{fmt.Sprintf("%s, %d", r.System, r.Objects), v})
				}
			}
			if len(bars) == 0 {
				continue
			}
			name := filepath.Join(folder, fmt.Sprintf("informer-%s-%s.svg", c.name, resource))
			if err := os.WriteFile(name, []byte(c.draw(resource, bars)), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// chart is one figure of all results, as bars.
type chart struct {
	name, title, unit string
	value             func(*Result) (float64, bool)
}

var charts = []chart{
	{"steady", "heap after the sync", "MB", func(r *Result) (float64, bool) { return mb(r.Steady), true }},
	{"peak", "highest heap during the sync", "MB", func(r *Result) (float64, bool) { return mb(r.SyncPeak), true }},
	{"cpu", "processor time of the sync", "s", func(r *Result) (float64, bool) { return r.SyncCPU, true }},
	{"relist", "heap during a relist, over steady", "", func(r *Result) (float64, bool) {
		if r.Relist == nil {
			return 0, false
		}
		return r.Relist.Over, true
	}},
}

type bar struct {
	label string
	value float64
}

// draw makes a bar chart.
func (c chart) draw(resource string, bars []bar) string {
	const width, label, row, top = 720, 230, 24, 40
	most := 0.0
	for _, b := range bars {
		most = max(most, b.value)
	}
	var s strings.Builder
	height := top + row*len(bars) + 10
	fmt.Fprintf(&s,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" `+
			`font-family="sans-serif" font-size="13">`+"\n",
		width, height)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&s, `<text x="10" y="24" font-size="15">%s: %s</text>`+"\n", resource, c.title)
	for i, b := range bars {
		y, w := top+row*i, (width-label-110)*b.value/most
		color := "#b8c2cc"
		if strings.HasPrefix(b.label, "flyball") {
			color = "#2f6f9f"
		}
		fmt.Fprintf(&s,
			`<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+
				`<text x="%.1f" y="%d">%.2f %s</text>`+"\n",
			label-8, y+16, b.label, label, y+3, w, row-6, color, label+w+6, y+16, b.value, c.unit)
	}
	s.WriteString("</svg>\n")
	return s.String()
}
