package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/workqueue"
)

// script is a source that adds the keys of a test.
type script struct {
	keys    []string      // added at the start
	hold    chan struct{} // The source is synced when the test closes it, or at once if it is nil.
	err     error         // returned after the initial keys
	more    chan string   // added later; sent by the test
	removed atomic.Bool
}

func (s *script) String() string { return "script" }
func (s *script) Repeats() bool  { return false }
func (s *script) Health() error  { return errors.New("script: cannot list scripts") }

func (s *script) Run(ctx context.Context, out *Sink[string], synced func()) error {
	defer s.removed.Store(true)
	feed := func(key string) { out.For(workqueue.Cause{Source: "script", Event: "Add", Object: key}).Add(key) }
	for _, key := range s.keys {
		feed(key)
	}
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil
		}
	}
	if s.err != nil {
		return s.err
	}
	synced()
	for {
		select {
		case key := <-s.more:
			feed(key)
		case <-ctx.Done():
			return nil
		}
	}
}

// started is a controller that runs in a bubble.
type started struct {
	*engine[string]
	stop context.CancelFunc
	done chan error // the result of Run; capacity 1
}

func start(t *testing.T, r Reconciler[string], o Options[string], sources ...Source[string]) *started {
	t.Helper()
	ctx, stop := context.WithCancel(quiet(t.Context()))
	c := New("test", r, o)
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			t.Fatal(err)
		}
	}
	s := &started{engine: engineOf(c), stop: stop, done: make(chan error, 1)}
	go func() { s.done <- c.Run(ctx) }()
	synctest.Wait()
	return s
}

func (s *started) Enqueue(key string) { s.outside().Enqueue(key) }

func (s *started) EnqueueAfter(key string, d time.Duration) { s.outside().EnqueueAfter(key, d) }

func (s *started) outside() *Controller[string] { return &Controller[string]{s.engine} }

// engineOf returns the engine of a controller.
func engineOf[K comparable](c *Controller[K]) *engine[K] { return c.engine.(*engine[K]) }

// runOf begins a run of a key.
func runOf(t *testing.T, c *engine[string], key string) *run[string] {
	t.Helper()
	r := c.checkBefore(quiet(t.Context()), &workqueue.Item[string]{Key: key})
	if r == nil {
		t.Fatalf("%s was put off", key)
	}
	return r
}

func (s *started) end() error {
	s.stop()
	return <-s.done
}

func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

// record is a reconciler that records its calls and calls a function of the test for the result.
type record struct {
	mu     sync.Mutex
	begin  time.Time
	calls  []string
	answer func(ctx context.Context, key string, call int) (Result, error)
}

func recorder(answer func(ctx context.Context, key string, call int) (Result, error)) *record {
	return &record{begin: time.Now(), answer: answer}
}

func (r *record) Reconcile(ctx context.Context, key string) (Result, error) {
	r.mu.Lock()
	r.calls = append(r.calls, fmt.Sprintf("%s@%s", key, time.Since(r.begin)))
	call := len(r.calls)
	r.mu.Unlock()
	if r.answer == nil {
		return Result{}, nil
	}
	return r.answer(ctx, key, call)
}

func (r *record) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func want(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNothingIsReconciledBeforeEverySourceIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(nil)
		slow := &script{keys: []string{"b"}, hold: make(chan struct{})}
		c := start(t, r, Options[string]{}, &script{keys: []string{"a"}}, slow)
		want(t, r.seen(), nil)
		if err := c.Health(); err == nil || err.Error() != "script: cannot list scripts" {
			t.Errorf("health while a source is not synced: %v", err)
		}
		close(slow.hold)
		synctest.Wait()
		// Two sources have no order between them.
		want(t, slices.Sorted(slices.Values(r.seen())), []string{"a@0s", "b@0s"})
		if err := c.Health(); err != nil {
			t.Errorf("health when all is synced: %v", err)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestErrorsAreRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(func(_ context.Context, _ string, call int) (Result, error) {
			if call < 4 {
				return Result{RequeueAfter: time.Hour}, errors.New("not yet") // the error wins over RequeueAfter
			}
			return Result{}, nil
		})
		c := start(t, r, Options[string]{}, &script{keys: []string{"a"}})
		time.Sleep(time.Minute)
		want(t, r.seen(), []string{"a@0s", "a@5ms", "a@15ms", "a@35ms"})
		if got := c.Stats(); got.Errors != 3 || got.Retries != 3 || got.Syncs != 4 || got.Dropped != 0 {
			t.Errorf("stats %+v", got)
		}
		if n := c.queue.NumRequeues("a"); n != 0 {
			t.Errorf("backoff is not forgotten after success: %d", n)
		}
		_ = c.end()
	})
}

func TestMaxRetriesGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &script{keys: []string{"a"}, more: make(chan string)}
		r := recorder(func(context.Context, string, int) (Result, error) { return Result{}, errors.New("never") })
		c := start(t, r, Options[string]{MaxRetries: 2}, source)
		time.Sleep(time.Hour)
		want(t, r.seen(), []string{"a@0s", "a@5ms", "a@15ms"})
		source.more <- "a" // It is added again, so the retries begin anew.
		time.Sleep(time.Hour)
		want(t, r.seen()[3:], []string{"a@1h0m0s", "a@1h0m0.005s", "a@1h0m0.015s"})
		if got := c.Stats(); got.Dropped != 2 || got.Retries != 4 {
			t.Errorf("stats %+v", got)
		}
		_ = c.end()
	})
}

func TestTerminalErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(func(context.Context, string, int) (Result, error) {
			return Result{}, fmt.Errorf("parse: %w", errors.Join(errors.New("x"), Terminal(errors.New("bad spec"))))
		})
		c := start(t, r, Options[string]{}, &script{keys: []string{"a"}})
		time.Sleep(time.Hour)
		want(t, r.seen(), []string{"a@0s"})
		if got := c.Stats(); got.Dropped != 1 || got.Errors != 1 {
			t.Errorf("stats %+v", got)
		}
		_ = c.end()
	})
	if Terminal(nil) != nil {
		t.Error("Terminal(nil) is not nil")
	}
	if IsTerminal(errors.New("x")) {
		t.Error("a plain error is terminal")
	}
}

func TestRequeueAfterRunsAgainAndIsCancelledByAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &script{keys: []string{"a"}, more: make(chan string)}
		r := recorder(func(_ context.Context, _ string, call int) (Result, error) {
			if call == 3 {
				return Result{}, nil
			}
			return Result{RequeueAfter: 10 * time.Second}, nil
		})
		c := start(t, r, Options[string]{}, source)
		time.Sleep(14 * time.Second) // the second run is due at 10 s, the third would be at 20 s
		source.more <- "a"
		time.Sleep(time.Hour)
		want(t, r.seen(), []string{"a@0s", "a@10s", "a@14s"})
		_ = c.end()
	})
}

// Source: controller-runtime v0.25.2 pkg/internal/controller.reconcileHandler: RequeueAfter wins over Requeue, Requeue
// is rate limited, and all other results without an error end the backoff.
func TestRequeueRunsAgainWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(func(_ context.Context, _ string, call int) (Result, error) {
			switch call {
			case 4:
				return Result{Requeue: true, RequeueAfter: time.Second}, nil
			case 6:
				return Result{Requeue: false}, nil
			}
			return Result{Requeue: true, RequeueAfter: -1}, nil
		})
		c := start(t, r, Options[string]{}, &script{keys: []string{"a"}})
		time.Sleep(time.Minute)
		want(t, r.seen(), []string{"a@0s", "a@5ms", "a@15ms", "a@35ms", "a@1.035s", "a@1.04s"})
		if got := c.Stats(); got.Errors != 0 || got.Retries != 0 || got.Requeues != 5 || got.Done != 1 {
			t.Errorf("stats %+v", got)
		}
		_ = c.end()
	})
}

func TestPanicBecomesAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the cause")
		r := recorder(func(_ context.Context, key string, call int) (Result, error) {
			if key == "a" && call <= 2 {
				panic(cause)
			}
			return Result{}, nil
		})
		c := start(t, r, Options[string]{}, &script{keys: []string{"a", "b"}})
		time.Sleep(time.Minute)
		want(t, r.seen(), []string{"a@0s", "b@0s", "a@5ms"})
		if got := c.Stats(); got.Panics != 1 || got.Errors != 1 || got.InFlight != 0 {
			t.Errorf("stats %+v", got)
		}
		_, err := c.syncHandler(runOf(t, c.engine, "b"))
		if err != nil {
			t.Error(err)
		}
		c.reconciler = Func[string](func(context.Context, string) (Result, error) { panic(cause) })
		_, err = c.syncHandler(runOf(t, c.engine, "b"))
		var panicked *PanicError
		if !errors.As(err, &panicked) || !errors.Is(err, cause) ||
			!strings.Contains(string(panicked.Stack), "TestPanicBecomesAnError") {
			t.Errorf("the error does not hold the panic: %v", err)
		}
		_ = c.end()
	})
}

func TestOneKeyIsNeverReconciledTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &script{keys: []string{"a", "b"}, more: make(chan string)}
		var running, most, others atomic.Int32
		r := recorder(func(_ context.Context, key string, _ int) (Result, error) {
			if key == "b" {
				others.Add(running.Load())
				return Result{}, nil
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second)
			return Result{}, nil
		})
		c := start(t, r, Options[string]{Workers: 4}, source)
		for range 5 {
			source.more <- "a" // It is added while it runs: one further run in all.
		}
		time.Sleep(time.Minute)
		calls := slices.DeleteFunc(r.seen(), func(call string) bool { return call[0] == 'b' })
		want(t, calls, []string{"a@0s", "a@1s"})
		if most.Load() != 1 {
			t.Errorf("%d reconciles of one key at once", most.Load())
		}
		_ = c.end()
	})
}

func TestCausesAndDeadlineReachTheReconciler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &script{keys: []string{"a", "a"}, hold: make(chan struct{})}
		var causes []workqueue.Cause
		var took time.Duration
		r := recorder(func(ctx context.Context, _ string, _ int) (Result, error) {
			causes = slices.Clone(Causes(ctx)) // The queue reuses them afterwards.
			begin := time.Now()
			<-ctx.Done()
			took = time.Since(begin)
			return Result{}, Terminal(ctx.Err())
		})
		c := start(t, r, Options[string]{Timeout: 3 * time.Second}, source)
		c.Enqueue("a")
		close(source.hold)
		time.Sleep(time.Minute)
		if err := c.end(); err != nil {
			t.Error(err)
		}
		var got []string
		for _, cause := range causes {
			got = append(got, cause.Source+" "+cause.Event)
		}
		want(t, got, []string{"script Add", "script Add", "manual Enqueue"})
		if took != 3*time.Second {
			t.Errorf("the reconcile was cancelled after %s, want 3s", took)
		}
		if Causes(t.Context()) != nil {
			t.Error("causes outside a reconcile")
		}
	})
}

// The first moment of a stop: reconciles in flight end with a live context, and queued keys are not started.
func TestStopDrainsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var alive error = errors.New("not called")
		r := recorder(func(ctx context.Context, _ string, _ int) (Result, error) {
			time.Sleep(5 * time.Second)
			alive = ctx.Err()
			return Result{}, nil
		})
		source := &script{keys: []string{"a", "b"}}
		c := start(t, r, Options[string]{}, source)
		begin := time.Now()
		if err := c.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != 5*time.Second || alive != nil {
			t.Errorf("stopped after %s with %v in the reconcile, want 5s with a live context", took, alive)
		}
		want(t, r.seen(), []string{"a@0s"})
		if !source.removed.Load() {
			t.Error("the source still runs")
		}
	})
}

// The second moment: at the deadline the context is cancelled. A reconcile that returns for that reason has not failed.
func TestStopCancelsAtTheDeadline(t *testing.T) {
	for _, c := range []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		want time.Duration
	}{
		{
			"its own", func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
			7 * time.Second,
		},
		{"the process's", func(ctx context.Context) (context.Context, context.CancelFunc) {
			work, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
			return workctx.With(ctx, work), cancel
		}, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := recorder(func(ctx context.Context, _ string, _ int) (Result, error) {
					<-ctx.Done()
					return Result{}, fmt.Errorf("write: %w", ctx.Err())
				})
				ctx, stop := context.WithCancel(quiet(t.Context()))
				ctx, cancel := c.ctx(ctx)
				defer cancel()
				ctl := New("test", r, Options[string]{DrainTimeout: 7 * time.Second})
				ctl.Enqueue("a")
				done := make(chan error, 1)
				go func() { done <- ctl.Run(ctx) }()
				synctest.Wait()
				begin := time.Now()
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took != c.want {
					t.Errorf("stopped after %s, want %s", took, c.want)
				}
				if got := ctl.Stats(); c.name == "its own" && got.Errors != 0 {
					t.Errorf("a reconcile cut off by the stop counts as failed: %+v", got)
				}
			})
		})
	}
}

func TestStopNamesWhatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		r := recorder(func(context.Context, string, int) (Result, error) { <-free; return Result{}, nil })
		c := start(t, r, Options[string]{Workers: 2, DrainTimeout: time.Second}, &script{keys: []string{"b", "a"}})
		want(t, c.InFlight(), []string{"a (running for 0s)", "b (running for 0s)"})
		err := c.end()
		var stuck *StuckError
		if !errors.As(err, &stuck) || stuck.Controller != "test" {
			t.Fatalf("got %v, want a StuckError", err)
		}
		want(t, stuck.Keys, []string{"a (running for 3s)", "b (running for 3s)"})
		close(free)
		synctest.Wait()
	})
}

func TestSourceErrorStopsTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("no such resource")
		c := start(t, recorder(nil), Options[string]{}, &script{}, &script{err: cause})
		if err := <-c.done; !errors.Is(err, cause) || !strings.Contains(err.Error(), "controller test") {
			t.Errorf("got %v", err)
		}
		c.stop()
	})
}

func TestSourcesCanComeWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(nil)
		first := &script{more: make(chan string)}
		c := start(t, r, Options[string]{}, first)
		late := &script{keys: []string{"late"}, more: make(chan string)}
		if err := c.Watch(late); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, r.seen(), []string{"late@0s"})
		first.more <- "a"
		synctest.Wait()
		want(t, r.seen(), []string{"late@0s", "a@0s"})
		_ = c.end()
		if err := c.Watch(late); !errors.Is(err, ErrStopped) {
			t.Errorf("Watch after the stop: %v", err)
		}
	})
}

func TestRunTwiceIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, recorder(nil), Options[string]{}, &script{})
		if err := c.Run(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("second Run: %v", err)
		}
		if err := c.Health(); err != nil {
			t.Errorf("the first run is affected: %v", err)
		}
		_ = c.end()
		if err := c.Run(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("Run after the stop: %v", err)
		}
	})
}

func TestStopBeforeSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(nil)
		c := start(t, r, Options[string]{}, &script{keys: []string{"a"}, hold: make(chan struct{})})
		if err := c.end(); err != nil {
			t.Error(err)
		}
		want(t, r.seen(), nil)
	})
}
