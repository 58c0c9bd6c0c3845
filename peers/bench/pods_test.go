package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/flyball-dev/flyball/peers/bench/lean"
)

// serveVariable tells a process of this test binary to serve that many pods to the one that started it.
const serveVariable = "FLYBALL_SERVE_PODS"

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(serveVariable)); err == nil {
		fmt.Fprintln(os.Stderr, lean.Serve("pods", filepath.Join(os.TempDir(), "flyball-replay"), n, os.Stdout))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// BenchmarkPods lists realistic pods over HTTP into a cache with one handler, and fewer of them again after the server
// has answered the watch with 410 Gone. The server is another process. It is done once, whatever b.N is.
func BenchmarkPods(b *testing.B) {
	b.Run("100,000 pods", func(b *testing.B) {
		onPods(b, lean.Plan{Objects: 100_000, Handlers: 1}, func(b *testing.B, r *lean.Result) {
			b.ReportMetric(r.SyncCPU*1e9, "cpu-ns")
			b.ReportMetric(float64(r.SyncPeak), "peak-B")
			b.ReportMetric(float64(r.Steady), "heap-B")
		})
	})
	b.Run("10,000 pods", func(b *testing.B) {
		onPods(b, lean.Plan{Objects: 10_000, Handlers: 1, Relist: true}, func(b *testing.B, r *lean.Result) {
			b.ReportMetric(r.Relist.CPU*1e9, "again-cpu-ns")
			b.ReportMetric(r.Relist.Over, "again-over")
		})
	})
}

// BenchmarkUpdates updates 10,000 pods of such a cache in turn, 10,000 a second, for five seconds.
func BenchmarkUpdates(b *testing.B) {
	const rate, seconds = 10_000, 5
	b.Run("10,000 pods", func(b *testing.B) {
		plan := lean.Plan{Objects: 10_000, Handlers: 10, Rates: []int{rate}, Seconds: seconds}
		onPods(b, plan, func(b *testing.B, r *lean.Result) {
			u := r.Updates[0]
			b.ReportMetric(u.CPU*1e9/rate/seconds, "cpu-ns")
			b.ReportMetric(u.P50*1e9, "p50-ns")
			b.ReportMetric(u.P99*1e9, "p99-ns")
			b.ReportMetric(float64(u.Peak), "peak-B")
		})
	})
}

func onPods(b *testing.B, p lean.Plan, report func(*testing.B, *lean.Result)) {
	for name, system := range map[string]string{"client-go": "clientgo", "Flyball": "flyball"} {
		b.Run(name, func(b *testing.B) {
			server := exec.Command(os.Args[0])
			server.Env = append(os.Environ(), fmt.Sprint(serveVariable, "=", p.Objects))
			server.Stderr = os.Stderr
			pipe, err := server.StdoutPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := server.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
			p.System, p.Resource = system, "pods"
			if _, err := fmt.Fscanln(pipe, &p.Server); err != nil {
				b.Fatal(err)
			}
			r, err := lean.Measure(b.Context(), p)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op")
			report(b, r)
		})
	}
}
