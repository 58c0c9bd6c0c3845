package lean

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// Result is what one system took in one process. Times are in seconds, memory in bytes; peaks are of live objects and
// garbage not yet collected, sampled every two milliseconds.
type Result struct {
	System, Resource  string
	Objects, Handlers int

	// Sync is from the start to the last add delivered; Steady the heap then, after collection.
	SyncWall, SyncCPU    float64
	SyncPeak, Steady     uint64
	Allocated, Mallocs   uint64
	GCs                  uint32
	PauseTotal, PauseMax float64

	Updates []Updates
	Relist  *Relist `json:",omitempty"`
}

// Updates is a time of updates at an even rate.
type Updates struct {
	Rate, Seconds int
	// Heard counts calls of all handlers.
	Heard     int64
	CPU       float64
	Peak      uint64
	Allocated uint64
	PauseMax  float64
	// P50 and P99 are from the sending of an event to the call of the last handler.
	P50, P99 float64
}

// Relist is a list of unchanged objects after the watch expired.
type Relist struct {
	Wall, CPU  float64
	Peak       uint64
	Over       float64 // Peak over steady.
	Allocated  uint64
	Heard      int64
	SteadyThen uint64
}

// cpu is the processor time of this process.
func cpu() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// heap is the size of all objects, garbage included.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// steady is heap after collection.
func steady() uint64 {
	for range 3 {
		runtime.GC()
	}
	return heap()
}

// peak samples heap until stop is called, which returns the highest.
func peak() (stop func() uint64) {
	ended, highest := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heap())
			select {
			case <-tick.C:
			case <-ended:
				highest <- most
				return
			}
		}
	}()
	return func() uint64 { close(ended); return <-highest }
}

// ears counts what the handlers receive.
type ears struct {
	calls atomic.Int64
	mu    sync.Mutex
	// ages are of updates heard by the last handler.
	ages []time.Duration
	last int
}

func (e *ears) heard(handler int, version string) {
	e.calls.Add(1)
	if handler != e.last {
		return
	}
	if age, update := Age(version); update {
		e.mu.Lock()
		e.ages = append(e.ages, age)
		e.mu.Unlock()
	}
}

// Plan is what to measure.
type Plan struct {
	System, Resource, Server string
	Objects, Handlers        int
	// Rates are updates a second, each for Seconds.
	Rates   []int
	Seconds int
	Relist  bool
}

// Measure runs a system in this process against a replay server.
func Measure(ctx context.Context, p Plan) (*Result, error) {
	config := &rest.Config{Host: p.Server, DisableCompression: true, QPS: -1}
	e := &ears{last: p.Handlers - 1, ages: make([]time.Duration, 0, 1<<10)}
	r := &Result{System: p.System, Resource: p.Resource, Objects: p.Objects, Handlers: p.Handlers}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	before := steady()
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	began, worked, top := time.Now(), cpu(), peak()
	synced := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- Systems[p.System](ctx, config, Resources[p.Resource], p.Handlers, e.heard, func() { close(synced) })
	}()
	select {
	case <-synced:
	case err := <-ended:
		return nil, fmt.Errorf("%s ended: %w", p.System, err)
	}
	all := int64(p.Objects * p.Handlers) // That one handler has synced says nothing of the others.
	for deadline := time.Now().Add(time.Minute); e.calls.Load() < all &&
		time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	r.SyncWall, r.SyncCPU, r.SyncPeak = time.Since(began).Seconds(), cpu()-worked, top()-before
	runtime.ReadMemStats(&m1)
	r.Allocated, r.Mallocs, r.GCs = m1.TotalAlloc-m0.TotalAlloc, m1.Mallocs-m0.Mallocs, m1.NumGC-m0.NumGC
	r.PauseTotal, r.PauseMax = float64(m1.PauseTotalNs-m0.PauseTotalNs)/1e9, longestPause(m0, m1)
	if got := e.calls.Load(); got != all {
		return nil, fmt.Errorf("%s: %d calls for %d objects and %d handlers", p.System, got, p.Objects, p.Handlers)
	}
	r.Steady = steady() - before
	time.Sleep(200 * time.Millisecond) // The watch is open.
	if p.Relist {
		var err error
		if r.Relist, err = relist(p, e, before); err != nil {
			return nil, err
		}
	}
	for _, rate := range p.Rates {
		u, err := updates(p, rate, e)
		if err != nil {
			return nil, err
		}
		r.Updates = append(r.Updates, u)
	}
	cancel()
	<-ended
	return r, nil
}

// longestPause is the longest of the collector's pauses between two readings, in seconds.
func longestPause(from, to runtime.MemStats) (longest float64) {
	for n := from.NumGC; n < to.NumGC && n < from.NumGC+256; n++ {
		longest = max(longest, float64(to.PauseNs[n%256])/1e9)
	}
	return longest
}

func control(server, what string) (string, error) {
	answer, err := http.Get(server + "/control/" + what)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// updates has the server send changes and waits until all handlers have heard of all.
func updates(p Plan, rate int, e *ears) (u Updates, err error) {
	u = Updates{Rate: rate, Seconds: p.Seconds}
	e.mu.Lock()
	e.ages = make([]time.Duration, 0, rate*p.Seconds)
	e.mu.Unlock()
	runtime.GC()
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	calls, worked, top := e.calls.Load(), cpu(), peak()
	if _, err := control(p.Server, fmt.Sprintf("updates?rate=%d&seconds=%d", rate, p.Seconds)); err != nil {
		return u, err
	}
	want := int64(rate * p.Seconds * p.Handlers)
	for deadline := time.Now().Add(5 * time.Minute); e.calls.Load()-calls < want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return u, fmt.Errorf("%s: %d of %d updates heard", p.System, e.calls.Load()-calls, want)
		}
	}
	u.Heard, u.CPU, u.Peak = e.calls.Load()-calls, cpu()-worked, top()
	runtime.ReadMemStats(&m1)
	u.Allocated, u.PauseMax = m1.TotalAlloc-m0.TotalAlloc, longestPause(m0, m1)
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.ages)
	u.P50, u.P99 = e.ages[len(e.ages)/2].Seconds(), e.ages[len(e.ages)*99/100].Seconds()
	return u, nil
}

// relist has the server end the watch, and waits until another has been opened behind a list.
func relist(p Plan, e *ears, before uint64) (*Relist, error) {
	r := &Relist{SteadyThen: steady() - before}
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	calls, began, worked, top := e.calls.Load(), time.Now(), cpu(), peak()
	if _, err := control(p.Server, "expire"); err != nil {
		return nil, err
	}
	// An update of nothing is executed by the next watch.
	if _, err := control(p.Server, "updates?rate=1&seconds=0"); err != nil {
		return nil, err
	}
	r.Wall, r.CPU = time.Since(began).Seconds(), cpu()-worked
	time.Sleep(300 * time.Millisecond) // What handlers are told, they have been told then.
	r.Peak, r.Heard = top()-before, e.calls.Load()-calls
	runtime.ReadMemStats(&m1)
	r.Allocated, r.Over = m1.TotalAlloc-m0.TotalAlloc, float64(r.Peak)/float64(r.SteadyThen)
	return r, nil
}
