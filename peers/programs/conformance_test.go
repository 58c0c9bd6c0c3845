package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// processes is how many specs run at once at each place. Most of the time they wait.
const processes = 8

// TestConformance runs the specs that are to run, at their places, in parallel where they allow it, and writes the
// table if they are as listed. FLYBALL_SPECS, a regular expression, runs only some of them.
func TestConformance(t *testing.T) {
	if os.Getenv("FLYBALL_CONFORMANCE") == "" {
		t.Skip("it takes twenty minutes: make test-conformance runs it")
	}
	all, list := conformance(t), readVerdicts(t)
	on, problems := verdicts(list, all)
	if len(problems) > 0 {
		t.Fatalf("the list is wrong:\n%s", strings.Join(problems, "\n"))
	}
	some := os.Getenv("FLYBALL_SPECS")
	var asked []string
	for _, spec := range all {
		if regexp.MustCompile(some).MatchString(spec) {
			asked = append(asked, spec)
		}
	}
	before, begin := load(t), time.Now()
	took := make([]string, 2)
	t.Run("place", func(t *testing.T) { // it ends when both have ended
		for i, place := range []string{alone, behind} {
			t.Run(place, func(t *testing.T) {
				t.Parallel()
				took[i] = specsAt(t, place, asked, on)
			})
		}
	})
	text := fmt.Sprintf("%s, Kubernetes %s, %d cores, %s, %d specs at once:\n%s.\n"+
		"The machine's load was %s before the run and %s after it.\n\n",
		begin.UTC().Format(time.DateOnly), upstream.Version, runtime.NumCPU(), runtime.Version(), processes,
		strings.Join(took, ",\n"), before, load(t)) + table(all, list, on)
	fmt.Print(text)
	if t.Failed() || some != "" {
		return
	}
	if err := docblock.Write(page, block, text); err != nil {
		t.Fatal(err)
	}
}

// specsAt runs those of the specs whose place it is, judges them, and tells how long that took.
func specsAt(t *testing.T, place string, specs []string, on map[string]*verdict) string {
	begin := time.Now()
	var focus []string
	for _, spec := range specs {
		if on[spec].Place == place {
			focus = append(focus, regexp.QuoteMeta(spec))
		}
	}
	if len(focus) == 0 {
		t.Skip("no spec runs here")
	}
	s := newSide(t, "e2e.test", "ginkgo", "agnhost")
	if place == alone {
		s.startFlyball(s.serveWebhooks()...)
		s.restConfig()
	} else {
		s.startFlyball(controllersElsewhere...)
		s.startPrograms()
	}
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	reports, problems, err := upstream.Specs{
		Bin: s.bin, Kubeconfig: s.config, Output: output,
		Flags: []string{
			fmt.Sprint("--procs=", processes), "--timeout=1h", "--silence-skips",
			"--focus=(" + strings.Join(focus, "|") + ")$",
		},
		Args: []string{"--disable-log-dump", "--dump-logs-on-failure=false"},
	}.Run(t.Context())
	if err != nil {
		tail, _ := os.ReadFile(output.Name())
		t.Fatalf("%v\n%s", err, tail[max(0, len(tail)-4000):])
	}
	for _, p := range append(problems, judge(specs, on, place, reports)...) {
		t.Error(p)
	}
	return fmt.Sprintf("%s %v, when the server had taken %d MB of memory", place, time.Since(begin).Round(time.Second),
		s.memory("flyball", "VmHWM:"))
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
