package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/backlog"
	"github.com/flyball-dev/flyball/workqueue"
)

// shelf is a source that repeats. It has a set of keys that change.
type shelf struct {
	mu   sync.Mutex
	has  map[string]bool
	outs map[*Sink[string]]bool
	runs int
	err  chan error // sent by the test, at most once; capacity 1
}

func newShelf(keys ...string) *shelf {
	s := &shelf{has: map[string]bool{}, outs: map[*Sink[string]]bool{}, err: make(chan error, 1)}
	for _, key := range keys {
		s.has[key] = true
	}
	return s
}

func (s *shelf) String() string { return "shelf" }
func (s *shelf) Health() error  { return nil }
func (s *shelf) Repeats() bool  { return true }

func (s *shelf) Run(ctx context.Context, out *Sink[string], synced func()) error {
	s.mu.Lock()
	s.runs++
	for _, key := range slices.Sorted(maps.Keys(s.has)) {
		out.LowPriority(workqueue.Cause{Source: "shelf", Event: "Add", Object: key}).Add(key)
	}
	s.outs[out] = true
	s.mu.Unlock()
	synced()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.outs, out)
	}()
	select {
	case err := <-s.err:
		return err
	case <-ctx.Done():
		return nil
	}
}

// change adds key as changed. there reports whether the shelf has the key from then on.
func (s *shelf) change(key string, there bool) {
	s.tell(func(q Enqueuer[string]) {
		s.has[key] = true
		if !there {
			delete(s.has, key)
		}
		q.Add(key)
	})
}

func (s *shelf) tell(add func(Enqueuer[string])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for out := range s.outs {
		add(out.For(workqueue.Cause{Source: "shelf", Event: "Change"}))
	}
}

// follower is a controller in its warm-up.
type follower struct {
	*Controller[string]
	t        *testing.T
	stop     context.CancelFunc
	ctx      context.Context
	warm, is chan error // the results of Warmup and Run; capacity 1
}

func follow(t *testing.T, r Reconciler[string], o Options[string], sources ...Source[string]) *follower {
	t.Helper()
	f := &follower{Controller: New("test", r, o), t: t, warm: make(chan error, 1), is: make(chan error, 1)}
	f.ctx, f.stop = context.WithCancel(quiet(t.Context()))
	for _, s := range sources {
		if err := f.Watch(s); err != nil {
			t.Fatal(err)
		}
	}
	go func() { f.warm <- f.Warmup(f.ctx) }()
	synctest.Wait()
	return f
}

func (f *follower) lead() {
	go func() { f.is <- f.Run(f.ctx) }()
	synctest.Wait()
}

func (f *follower) end() {
	f.t.Helper()
	f.stop()
	if err := errors.Join(<-f.warm, <-f.is); err != nil {
		f.t.Error(err)
	}
}

// After a warm-up, keys that changed come first, the last change before the others, and then the initial keys. No
// source is run again, and no key is reconciled twice.
func TestWarmupFillsABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cold := newShelf("a", "b", "c", "d"), &script{keys: []string{"cold"}}
		r := recorder(nil)
		f := follow(t, r, Options[string]{}, s, cold)
		if err := f.Health(); err != nil {
			t.Errorf("a follower that is warm: %v", err)
		}
		s.change("b", true)
		s.change("new", true)
		s.change("c", true)
		s.change("b", true)
		time.Sleep(time.Hour)
		if got := f.Stats(); got.Held != 5 || got.Queued != 0 || got.Events != 8 {
			t.Errorf("stats %+v", got)
		}
		want(t, r.seen(), nil)
		f.lead()
		calls := r.seen()
		want(t, slices.DeleteFunc(slices.Clone(calls), func(call string) bool { return call == "cold@1h0m0s" }),
			[]string{"b@1h0m0s", "c@1h0m0s", "new@1h0m0s", "a@1h0m0s", "d@1h0m0s"})
		if len(calls) != 6 || s.runs != 1 {
			t.Errorf("%q, and the source was run %d times", calls, s.runs)
		}
		if got := f.Stats(); got.Held != 0 || !f.Work().Started {
			t.Errorf("stats %+v, work %+v", got, f.Work())
		}
		s.change("a", true) // The source is still running.
		synctest.Wait()
		if calls := r.seen(); calls[len(calls)-1] != "a@1h0m0s" {
			t.Errorf("%q", calls)
		}
		f.end()
		if len(s.outs) > 0 || !cold.removed.Load() {
			t.Error("a source was left running")
		}
	})
}

// A delay that was asked for during the warm-up counts from that moment. A backoff counts from the takeover.
func TestDelaysOutliveTheWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newShelf(), recorder(nil)
		f := follow(t, r, Options[string]{}, s)
		s.tell(func(q Enqueuer[string]) {
			q.AddAfter("past", time.Second)
			q.AddAfter("later", time.Hour)
			q.AddAfter("later", 2*time.Hour) // The earlier one counts.
			q.AddAfter("both", time.Hour)
			q.Add("both")
			q.AddAfter("at once", 0)
			for range 20 {
				q.AddRateLimited("limited") // That counts as one failure, not as twenty.
			}
			q.AddRateLimited("limited and added")
			q.Add("limited and added")
		})
		time.Sleep(time.Minute)
		f.lead()
		time.Sleep(2 * time.Hour)
		calls := r.seen()
		slices.Sort(calls)
		want(t, calls,
			[]string{
				"at once@1m0s", "both@1h0m0s", "both@1m0s", "later@1h0m0s", "limited and added@1m0s",
				"limited@1m0.005s", "past@1m0s",
			})
		f.end()
	})
}

// The keys of objects that come and go for months do not add up.
func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newShelf("stays"), recorder(nil)
		f := follow(t, r, Options[string]{Workers: 4}, s)
		most := 0
		for i := range 5 * backlog.Least {
			s.change(fmt.Sprint("job-", i), false)
			if i%1000 == 0 {
				synctest.Wait()
			}
			most = max(most, f.Stats().Held)
		}
		s.change("late", true)
		synctest.Wait()
		if most > backlog.Least+1001 || s.runs < 4 {
			t.Errorf("%d keys were held, the source was run %d times", most, s.runs)
		}
		f.lead()
		calls := r.seen()
		if !slices.Contains(calls, "stays@0s") || !slices.Contains(calls, "late@0s") || len(calls) > most+1 {
			t.Errorf("%d calls, the first are %q", len(calls), calls[:10])
		}
		f.end()
	})
}

// A backlog that outgrows its bound at the moment of the takeover is dropped: the controller starts as if there had
// been no warm-up.
func TestOutgrownBacklogIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newShelf("stays"), recorder(nil)
		f := follow(t, r, Options[string]{}, s)
		for i := range backlog.Least { // With the initial key, the last one is one too many.
			s.change(fmt.Sprint("job-", i), false)
		}
		go func() { f.is <- f.Run(f.ctx) }()
		synctest.Wait()
		want(t, r.seen(), []string{"stays@0s"})
		if err := f.Health(); err != nil {
			t.Error(err)
		}
		f.end()
	})
}

func TestWithoutWarmup(t *testing.T) {
	for name, o := range map[string]Options[string]{"off": {EnableWarmup: ptr.To(false)}, "nothing repeats": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var source Source[string] = newShelf("a")
				if o.EnableWarmup == nil {
					source = &script{keys: []string{"a"}}
				}
				r := recorder(nil)
				f := follow(t, r, o, source)
				if err := <-f.warm; err != nil || f.Stats().Events != 0 {
					t.Errorf("%v, %+v", err, f.Stats())
				}
				f.warm <- nil
				time.Sleep(time.Second)
				f.lead()
				want(t, r.seen(), []string{"a@1s"})
				f.end()
			})
		})
	}
}

// If a warm-up ends before Run, or begins after it, Run starts as if there had been no warm-up.
func TestWarmupThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newShelf("a"), recorder(nil)
		c := New("test", r, Options[string]{})
		if err := c.Watch(s); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			ctx, stop := context.WithTimeout(quiet(t.Context()), time.Second)
			if err := c.Warmup(ctx); err != nil {
				t.Error(err)
			}
			stop()
		}
		ctx, stop := context.WithTimeout(quiet(t.Context()), time.Second)
		defer stop()
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		synctest.Wait()
		if err := c.Warmup(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		want(t, r.seen(), []string{"a@2s"})
		if s.runs != 3 || len(s.outs) > 0 {
			t.Errorf("the source was run %d times", s.runs)
		}
	})
}

// A source that fails ends the warm-up; or Run, if that was called.
func TestSourceFailsInTheWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf("a")
		f := follow(t, recorder(nil), Options[string]{}, s)
		s.err <- errors.New("broken")
		if err := <-f.warm; err == nil || err.Error() != "controller test: broken" {
			t.Errorf("warm-up: %v", err)
		}
		f.stop()

		s = newShelf("a")
		f = follow(t, recorder(nil), Options[string]{}, s)
		f.lead()
		s.err <- errors.New("broken")
		if err := <-f.is; err == nil || err.Error() != "controller test: broken" {
			t.Errorf("run: %v", err)
		}
		if err := <-f.warm; err != nil {
			t.Errorf("warm-up beside run: %v", err)
		}
		f.stop()
	})
}

// Sources can be added during the warm-up, as they can during Run.
func TestWatchInTheWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, cold := newShelf("a"), newShelf("b"), &script{keys: []string{"cold"}}
		r := recorder(nil)
		f := follow(t, r, Options[string]{}, first)
		if err := errors.Join(f.Watch(second), f.Watch(cold)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := f.Stats().Held; got != 2 {
			t.Errorf("%d keys held", got)
		}
		f.lead()
		got := r.seen()
		slices.Sort(got)
		want(t, got, []string{"a@0s", "b@0s", "cold@0s"})
		f.end()
	})
}

// TestTakeoverAtAnyMoment: keys change at random moments before, during and after the takeover. Each key is reconciled
// after its last change, none runs twice at once, and no goroutine is left behind.
func TestTakeoverAtAnyMoment(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { takeOverAtRandom(t, seed) })
	}
}

func takeOverAtRandom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 17))
	s := newShelf("a", "b", "c")
	var mu sync.Mutex
	changed, done := map[string]int{}, map[string]int{} // numbers of changes: made, and seen by a reconcile that ended
	r := Func[string](func(_ context.Context, key string) (Result, error) {
		mu.Lock()
		saw := changed[key]
		mu.Unlock()
		time.Sleep(time.Duration(saw%3) * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		done[key] = saw + 1
		return Result{}, nil
	})
	f := follow(t, r, Options[string]{Workers: 2}, s)
	var churn sync.WaitGroup
	for _, name := range strings.Fields("a b d") {
		for i := range 30 {
			wait := time.Duration(random.IntN(30)) * time.Millisecond
			churn.Go(func() {
				time.Sleep(wait)
				mu.Lock()
				changed[name]++
				mu.Unlock()
				s.change(name, i%4 != 0)
			})
		}
	}
	time.Sleep(time.Duration(random.IntN(35)) * time.Millisecond)
	f.lead()
	churn.Wait()
	time.Sleep(time.Second)
	synctest.Wait()
	for key := range s.has {
		if done[key] != changed[key]+1 {
			t.Errorf("seed %d: %s was reconciled after change %d of %d", seed, key, done[key]-1, changed[key])
		}
	}
	if w := f.Work(); !w.Started || w.Ready+w.InFlight > 0 {
		t.Errorf("seed %d: left %+v", seed, w)
	}
	f.end()
}

// LowPriority gives its keys a low priority, unless the caller sets one.
func TestEnqueuerPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, high, low := recorder(nil), 1, workqueue.LowPriority
		f := follow(t, r, Options[string]{Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})},
			feeder(func(out *Sink[string]) {
				unchanged := out.LowPriority(workqueue.Cause{Source: "feeder"})
				unchanged.Add("unchanged")
				unchanged.AddWith("urgent", workqueue.AddOptions{Priority: &high})
				out.For(workqueue.Cause{Source: "feeder"}).AddWith("unhurried", workqueue.AddOptions{Priority: &low})
				out.For(workqueue.Cause{Source: "feeder"}).Add("changed")
			}))
		f.lead()
		want(t, r.seen(), []string{"urgent@0s", "changed@0s", "unchanged@0s", "unhurried@0s"})
		f.end()
	})
}

// feeder is a source that adds its keys once.
type feeder func(out *Sink[string])

func (f feeder) String() string { return "feeder" }
func (f feeder) Repeats() bool  { return false }
func (f feeder) Health() error  { return nil }

func (f feeder) Run(_ context.Context, out *Sink[string], synced func()) error {
	f(out)
	synced()
	return nil
}
