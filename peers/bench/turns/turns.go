// Package turns has what the commands share that measure systems in turns: the figures of all turns of a system, and
// the line that says where they come from.
package turns

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
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
