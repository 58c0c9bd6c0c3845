// Package turns has what the commands share that measure systems in turns: the figures of all turns of a system, their
// table, and the line that says where they come from.
package turns

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Head says when, on what and of which versions the figures are. It asks the go command for the versions, so it is to
// be called in the module that the programs were built in.
func Head(turns int) (string, error) {
	out, err := exec.Command("go", "list", "-m", "k8s.io/client-go", "sigs.k8s.io/controller-runtime").Output()
	if err != nil {
		return "", fmt.Errorf("versions of the modules: %w", err)
	}
	var versions []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // The path, the version, and perhaps what replaces both: "=> path version".
		versions = append(versions, path.Base(fields[0])+" "+fields[len(fields)-1])
	}
	return fmt.Sprintf("%s, %d cores (%s), %s, %s;\n"+
		"medians of %d turns, with the lowest and the highest in brackets.\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), processor(), runtime.Version(),
		strings.Join(versions, ", "), turns), nil
}

// processor returns what the machine calls its processor.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // Only Linux has it.
	if _, name, found := strings.Cut(string(info), "model name\t: "); found {
		name, _, _ = strings.Cut(name, "\n")
		return name
	}
	return runtime.GOARCH
}

// Median returns the figure in the middle, or the mean of the two in the middle; zero if there is none.
func Median(figures []float64) float64 {
	n := len(figures)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Percentile sorts the figures and returns that percentile; zero if there are none.
func Percentile[T cmp.Ordered](figures []T, percent int) (p T) {
	if len(figures) > 0 {
		slices.Sort(figures)
		p = figures[len(figures)*percent/100]
	}
	return p
}

// Row is what a table shows of its systems.
type Row struct {
	Title string
	// Figures are those of each system's turns.
	Figures [][]float64
}

// RowOf returns the row of a figure of results, which are those of each system's turns.
func RowOf[R any](title string, results [][]R, figure func(R) float64) Row {
	row := Row{title, make([][]float64, len(results))}
	for i, all := range results {
		for _, r := range all {
			row.Figures[i] = append(row.Figures[i], figure(r))
		}
	}
	return row
}

// Table returns the rows in Markdown: the median of each system's figures with the lowest and the highest, and how the
// last system's median compares with the first's.
func Table(title string, systems []string, rows []Row) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s | %s | |\n|---|%s\n", title, strings.Join(systems, " | "),
		strings.Repeat("---|", len(systems)+1))
	for _, row := range rows {
		fmt.Fprintf(&out, "| %s |", row.Title)
		for _, all := range row.Figures {
			fmt.Fprintf(&out, " %s (%s–%s) |", Figure(Median(all)), Figure(slices.Min(all)), Figure(slices.Max(all)))
		}
		first, last := Median(row.Figures[0]), Median(row.Figures[len(systems)-1])
		if last > 0 && first > 0 {
			fmt.Fprintf(&out, " %.2f", last/first)
		}
		out.WriteString(" |\n")
	}
	return out.String()
}

// writers is how many paced writes are under way at once.
const writers = 8

// Paced calls write for each number below n, at most rate times a second. It stops at an error.
func Paced(ctx context.Context, n, rate int, write func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	begin := time.Now()
	for i := 0; i < n && ctx.Err() == nil; i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		g.Go(func() error { return write(i) })
	}
	return g.Wait()
}

// Figure writes a number with three digits, or all digits before the point.
func Figure(f float64) string {
	switch {
	case f >= 99.95:
		return fmt.Sprintf("%.0f", f)
	case f >= 9.995:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}
