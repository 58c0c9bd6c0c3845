package bench

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var ratios = flag.Bool("ratios", false, "measure systems in turns and print how they compare")

// interleaved measures systems in turns, many short batches each, and returns for each the time of its fastest batch
// per call. On a machine that has other things to do this compares better than one long run after the other.
func interleaved(batches, calls int, systems []func(i int)) []time.Duration {
	best := make([]time.Duration, len(systems))
	next := make([]int, len(systems))
	for range batches {
		for s, call := range systems {
			began := time.Now()
			for range calls {
				call(next[s])
				next[s]++
			}
			if took := time.Since(began); best[s] == 0 || took < best[s] {
				best[s] = took
			}
		}
	}
	return best
}

// TestQueueRatios prints the cycle benchmark, each variant beside client-go with and without metrics.
func TestQueueRatios(t *testing.T) {
	if !*ratios {
		t.Skip("run with -ratios")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintln(w, "keys\tqueue\tns\tclient-go/this\tclient-go with metrics/this\t")
	for _, n := range []int{1, 100, 10_000, 1_000_000} {
		printRatios(w, fmt.Sprint(n, " strings"), makeKeys(n))
		printRatios(w, fmt.Sprint(n, " requests"), makeRequests(n))
	}
}

func printRatios[K comparable](w *tabwriter.Writer, title string, keys []K) {
	const batches, size = 200, 20_000
	all := variants[K]()
	var calls []func(int)
	for _, v := range all {
		cycle, stop := v.new()
		defer stop()
		calls = append(calls, func(i int) { cycle(keys[i%len(keys)]) })
	}
	best := interleaved(batches, size, calls)
	of := func(name string) float64 {
		return float64(best[slices.IndexFunc(all, func(v variant[K]) bool { return v.name == name })]) / size
	}
	for _, v := range all {
		ns := of(v.name)
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.2f\t%.2f\t\n", title, v.name, ns, of("clientgo")/ns, of("clientgo-metrics")/ns)
	}
}

// TestQueueWorkerRatios prints what a key costs with one producer and many workers that have nothing to do.
func TestQueueWorkerRatios(t *testing.T) {
	if !*ratios {
		t.Skip("run with -ratios")
	}
	const rounds = 40
	keys := makeKeys(50_000)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintln(w, "workers\tqueue\tmedian ns\tfastest ns\t")
	for _, workers := range []int{1, 4, 16} {
		took := make([][]time.Duration, len(systems))
		for range rounds {
			for i, s := range systems {
				took[i] = append(took[i], produce(s.new(), keys, workers))
			}
		}
		for i, s := range systems {
			slices.Sort(took[i])
			perKey := func(d time.Duration) float64 { return float64(d) / float64(len(keys)) }
			fmt.Fprintf(w, "%d\t%s\t%.0f\t%.0f\t\n", workers, s.name, perKey(took[i][rounds/2]), perKey(took[i][0]))
		}
	}
}

// produce adds the keys, which differ, while the workers take them, and returns how long it took until all were done.
func produce(q queue, keys []string, workers int) time.Duration {
	var running, undone sync.WaitGroup
	undone.Add(len(keys))
	for range workers {
		running.Go(func() {
			for {
				key, ok := q.Get()
				if !ok {
					return
				}
				q.Done(key)
				undone.Done()
			}
		})
	}
	began := time.Now()
	for _, key := range keys {
		q.Add(key)
	}
	undone.Wait()
	took := time.Since(began)
	q.ShutDown()
	running.Wait()
	return took
}
