package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// gauge counts the reconciles in flight, from inside the reconciler.
type gauge struct {
	mu            sync.Mutex
	now, peak     int
	begun         map[string]int
	twice         []string // keys that two workers reconciled at once
	inFlightByKey map[string]bool
}

func (g *gauge) begin(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun == nil {
		g.begun, g.inFlightByKey = map[string]int{}, map[string]bool{}
	}
	if g.inFlightByKey[key] {
		g.twice = append(g.twice, key)
	}
	g.inFlightByKey[key] = true
	g.begun[key]++
	g.now++
	g.peak = max(g.peak, g.now)
}

func (g *gauge) end(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlightByKey[key] = false
	g.now--
}

func (g *gauge) total() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, runs := range g.begun {
		n += runs
	}
	return n
}

// running starts a controller in a bubble. stop ends it and returns the result of Run.
func running(t *testing.T, c *reconcile.Controller[string]) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-done
	}
}

// TestWorkIsCountedExactly: fifty workers run a thousand reconciles, some of which fail or panic. Stats has the same
// numbers as the reconciler, including the peak, and nothing stays in flight.
func TestWorkIsCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, workers = 1000, 50
		var seen gauge
		var failed, panicked atomic.Uint64
		c := reconcile.New("counted",
			reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
				seen.begin(key)
				defer seen.end(key)
				time.Sleep(time.Millisecond)
				switch key[len(key)-1] {
				case '3':
					failed.Add(1)
					return reconcile.Result{}, reconcile.Terminal(errors.New("senseless"))
				case '7':
					panicked.Add(1)
					panic(reconcile.Terminal(errors.New("worse")))
				}
				return reconcile.Result{}, nil
			}), reconcile.Options[string]{Workers: workers})
		for i := range keys {
			c.Enqueue(fmt.Sprint(i))
		}
		stop := running(t, c)
		if s := c.Stats(); s.InFlight != workers || s.Queued != keys-workers {
			t.Errorf("at the start %+v", s)
		}
		time.Sleep(time.Minute)
		s := c.Stats()
		if s.Syncs != keys || s.InFlight != 0 || s.Queued != 0 || s.Peak != workers || seen.peak != workers {
			t.Errorf("%+v, and the reconciler saw %d at once", s, seen.peak)
		}
		if failed.Load() != 100 || panicked.Load() != 100 || s.Errors != 200 || s.Panics != 100 || s.Dropped != 200 {
			t.Errorf("%+v, of %d errors and %d panics", s, failed.Load(), panicked.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); s.Syncs != keys || s.InFlight != 0 {
			t.Errorf("after the stop %+v", s)
		}
	})
}

// TestNeverMoreThanWorkers: three workers run at most three reconciles at once, and never two of one key.
func TestNeverMoreThanWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen gauge
		c := reconcile.New("three",
			reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
				seen.begin(key)
				defer seen.end(key)
				time.Sleep(time.Second)
				return reconcile.Result{}, nil
			}), reconcile.Options[string]{Workers: 3})
		stop := running(t, c)
		for range 5 {
			for i := range 20 {
				c.Enqueue(fmt.Sprint(i))
			}
			time.Sleep(1500 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		if s := c.Stats(); seen.peak != 3 || s.Peak != 3 || len(seen.twice) != 0 {
			t.Errorf("%d at once, counted as %d; beside themselves: %q", seen.peak, s.Peak, seen.twice)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestBurstWhileRunningIsOneMoreRun: a hundred adds of a key that is in flight lead to one further run.
func TestBurstWhileRunningIsOneMoreRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen gauge
		c := reconcile.New("burst",
			reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
				seen.begin(key)
				defer seen.end(key)
				time.Sleep(time.Second)
				return reconcile.Result{}, nil
			}), reconcile.Options[string]{Workers: 4})
		stop := running(t, c)
		c.Enqueue("a")
		synctest.Wait()
		for range 100 {
			c.Enqueue("a")
		}
		time.Sleep(time.Hour)
		if n := seen.total(); n != 2 || len(seen.twice) != 0 {
			t.Errorf("%d runs, want the one that was in flight and one more", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingIsAdmittedAfterTheStop: a controller is stopped at a random moment while sources and reconciles keep
// adding keys. No reconcile begins afterwards. Those in flight end with a context that is alive. Every key either has
// been reconciled since its last add, or Left returns it.
func TestNothingIsAdmittedAfterTheStop(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) { stopUnderLoad(t, rand.New(rand.NewPCG(seed, 4))) })
	}
}

func stopUnderLoad(t *testing.T, random *rand.Rand) {
	var seen gauge
	var stopped, cut atomic.Bool
	var c *reconcile.Controller[string]
	c = reconcile.New("stopped",
		reconcile.Func[string](func(ctx context.Context, key string) (reconcile.Result, error) {
			if stopped.Load() {
				t.Errorf("%s begins after the stop", key)
			}
			seen.begin(key)
			defer seen.end(key)
			time.Sleep(7 * time.Millisecond)
			c.Enqueue(key + "'s child")
			if ctx.Err() != nil {
				cut.Store(true)
			}
			return reconcile.Result{}, nil
		}), reconcile.Options[string]{Workers: 5})
	stop := running(t, c)
	var producers sync.WaitGroup
	halt := make(chan struct{})
	added := make([][]string, 3)
	for p := range added {
		producers.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("p%d-%d", p, i)
				added[p] = append(added[p], key)
				c.Enqueue(key)
				select {
				case <-halt:
					return
				case <-time.After(time.Duration(p+1) * time.Millisecond):
				}
			}
		})
	}
	time.Sleep(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
	done := make(chan error, 1)
	go func() { done <- stop() }()
	synctest.Wait()
	stopped.Store(true)
	inFlight := c.Stats().InFlight
	close(halt)
	if err := <-done; err != nil || cut.Load() {
		t.Errorf("stopped with %v; a context had ended: %v", err, cut.Load())
	}
	producers.Wait()
	s := c.Stats()
	if n := seen.total(); int(s.Syncs) != n || s.InFlight != 0 || inFlight > 5 || s.Peak > 5 {
		t.Errorf("%+v, %d begun, %d in flight at the stop", s, n, inFlight)
	}
	left := c.Left(1 << 20)
	for _, key := range slices.Concat(added...) {
		if _, named := slices.BinarySearch(left, key); !named && seen.begun[key] == 0 {
			t.Errorf("%s is lost", key)
		}
	}
}

// TestAdmit: a key that Admit refuses does not run, and runs when it is added again later.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		open := false
		r := reconcile.Func[string](func(_ context.Context, key string) (reconcile.Result, error) {
			ran = append(ran, key)
			return reconcile.Result{}, nil
		})
		admit := func(key string) bool { return open || key == "always" }
		c := reconcile.New("admits", r, reconcile.Options[string]{Admit: admit})
		stop := running(t, c)
		c.Enqueue("later")
		c.Enqueue("always")
		synctest.Wait()
		open = true
		c.Enqueue("later")
		synctest.Wait()
		if want := []string{"always", "later"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestReleaseAfter: a reconcile that waits releases its slot after a second, and the key of another group runs. Hung
// returns the first key after a minute.
func TestReleaseAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, starts := time.Now(), make(chan string, 2)
		r := reconcile.Func[string](func(ctx context.Context, key string) (reconcile.Result, error) {
			starts <- fmt.Sprintf("%s@%v", key, time.Since(began))
			if key == "slow" {
				<-ctx.Done()
			}
			return reconcile.Result{}, nil
		})
		c := reconcile.New("slots", r, reconcile.Options[string]{
			Workers: 2, ReleaseAfter: time.Second, HungAfter: time.Minute, DrainTimeout: time.Second,
			Order: workqueue.NewFairOrder(workqueue.FairOptions[string]{
				Group: func(key string) string { return key }, Limit: 1,
			}),
		})
		c.Enqueue("slow") // It begins at once, perhaps before the timer exists.
		stop := running(t, c)
		c.Enqueue("fast")
		time.Sleep(2 * time.Minute)
		if first, second := <-starts, <-starts; first != "slow@0s" || second != "fast@1s" {
			t.Errorf("%s, then %s", first, second)
		}
		if hung := c.Hung(); len(hung) != 1 || !hung["slow"].Equal(began) {
			t.Errorf("hung %v", hung)
		}
		if err := c.Alive(); err != nil {
			t.Errorf("not alive: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := c.Alive(); err == nil {
			t.Error("alive after the stop")
		}
	})
}
