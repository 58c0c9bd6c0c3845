package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/peers/bench/turns"
)

// Result is what a system took for a work. Times are in seconds, memory in bytes.
type Result struct {
	// Wall and CPU are from the start of the manager to the end of the work; of a storm and of the steady state they
	// begin when all objects of the start have been reconciled.
	Wall, CPU         float64
	Allocated, Allocs uint64
	// Resident is the highest resident memory of the process so far, Heap the live objects at the end.
	Resident, Heap uint64
	Requests       int64
	Reconciles     int64
	// First is from the start of the manager to the first reconcile.
	First float64
	// P50 and P99 are from a write to the reconcile that reads it.
	P50, P99 float64
}

// reading is a state of the counters of this process.
type reading struct {
	at                   time.Time
	cpu                  float64
	allocated, allocs    uint64
	requests, reconciles int64
}

// Measure runs a system in this process until the work is done. It writes a line to out when a storm may begin.
func Measure(ctx context.Context, s System, w Work, server string, out io.Writer) (*Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var requests atomic.Int64
	config := &rest.Config{
		Host: server, QPS: -1,
		Transport: &http.Transport{MaxIdleConnsPerHost: 100}, // Else most of 64 workers dial for each request.
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counted{next, &requests}
	})
	first, begun, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	t := newTask(w, func() { close(first) }, func() { close(begun) }, func() { close(done) })
	read := func() reading {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return reading{time.Now(), cpuTime(), m.TotalAlloc, m.Mallocs, requests.Load(), t.reconciles.Load()}
	}
	setup := Setup{Workers: w.Workers, Reconcile: t.reconcile, For: &corev1.ConfigMap{}}
	if w.Kind == Steady {
		setup.Resync = time.Second
	}
	var keys []types.NamespacedName
	if w.Kind == Feed {
		for n := range w.Objects {
			keys = append(keys, types.NamespacedName{Namespace: Namespace, Name: Object(n).Name})
		}
	}
	runtime.GC()

	from := read()
	ended := make(chan error, 1)
	go func() {
		if w.Kind == Feed {
			ended <- s.Feed(ctx, config, setup, keys)
			return
		}
		ended <- s.Run(ctx, config, setup)
	}()
	wait := func(what string, c <-chan struct{}) error {
		select {
		case <-c:
			return nil
		case err := <-ended:
			return fmt.Errorf("the controller ended before %s: %w", what, err)
		case <-time.After(3 * time.Minute):
			return fmt.Errorf("%s takes too long: %d reconciles", what, t.reconciles.Load())
		}
	}
	if err := wait("its first reconcile", first); err != nil {
		return nil, err
	}
	r := &Result{First: time.Since(from.at).Seconds()}
	if w.Kind == Storm {
		if err := wait("the storm", begun); err != nil {
			return nil, err
		}
		from = read()
		if _, err := fmt.Fprintln(out, "ready"); err != nil {
			return nil, err
		}
	}
	if err := wait("the work was done", done); err != nil {
		return nil, err
	}
	if w.Kind == Steady {
		from = read()
		time.Sleep(time.Duration(w.Seconds) * time.Second)
	}
	to := read()
	r.Wall, r.CPU = to.at.Sub(from.at).Seconds(), to.cpu-from.cpu
	r.Allocated, r.Allocs = to.allocated-from.allocated, to.allocs-from.allocs
	r.Requests, r.Reconciles = to.requests-from.requests, to.reconciles-from.reconciles
	var err error
	// Rusage.Maxrss is not the peak: a process that another one starts inherits its parent's.
	if _, r.Resident, err = turns.Usage(os.Getpid()); err != nil {
		return nil, err
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Heap = m.HeapAlloc
	r.P50, r.P99 = t.percentiles()
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return r, nil
}

// cpuTime returns the processor time of this process in seconds.
func cpuTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// percentiles returns the median and the 99th percentile of the ages, in seconds; zero if there are none.
func (t *task) percentiles() (p50, p99 float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return turns.Percentile(t.ages, 50).Seconds(), turns.Percentile(t.ages, 99).Seconds()
}

// counted counts requests.
type counted struct {
	next     http.RoundTripper
	requests *atomic.Int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.RoundTrip(r)
}

func (c counted) WrappedRoundTripper() http.RoundTripper { return c.next }
