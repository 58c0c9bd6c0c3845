package manager_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// A runnable that panics stops its manager in order, as a runnable that returns an error does. The rest of the process
// continues.
func TestPanickingRunnableStopsTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		finished := false
		onConfigMaps(t, m, "slow", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				time.Sleep(5 * time.Second)
				finished = ctx.Err() == nil
			}
			return reconcile.Result{}, nil
		})
		if err := m.Add(runnable{name: "bad", run: func(context.Context) error {
			time.Sleep(time.Second)
			panic("no such map")
		}}); err != nil {
			t.Fatal(err)
		}
		w.create(t, m, "work")
		l := live(t, m)
		err := <-l.done
		var panicked *reconcile.PanicError
		if !errors.As(err, &panicked) || err.Error() != "bad: panic: no such map" ||
			!strings.Contains(string(panicked.Stack), "change_test.go") || !finished {
			t.Errorf("error %v, others finished: %v", err, finished)
		}
		if lines := l.logs.with("change_test.go"); len(lines) != 1 {
			t.Errorf("the stack is in %d lines of the log", len(lines))
		}
		writes := w.writes("leases")
		if last := writes[len(writes)-1]; !strings.HasPrefix(last, "update leases") {
			t.Errorf("last write to the lease: %s", last)
		}
	})
}

// A runnable that is added while the manager drains is rejected and does not run.
func TestAddDuringTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		onConfigMaps(t, m, "slow", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				time.Sleep(5 * time.Second)
			}
			return reconcile.Result{}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		l.stop()
		synctest.Wait()
		for _, free := range []bool{true, false} {
			err := m.Add(
				runnable{name: "late", free: free, run: func(context.Context) error { t.Error("it runs"); return nil }},
			)
			if !errors.Is(err, manager.ErrStopped) {
				t.Errorf("added with %v", err)
			}
		}
		if err := <-l.done; err != nil {
			t.Error(err)
		}
	})
}

// Several callers remove and restart one controller at once, while it works. One of them succeeds, the others get an
// error, and the controller never runs twice at a time.
func TestOneChangeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		builds, running := 0, 0
		guarded(t, m, &builds, func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name != "work" {
				return reconcile.Result{}, nil
			}
			if running++; running > 1 {
				t.Error("two run at once")
			}
			time.Sleep(2 * time.Second)
			running--
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		var wg sync.WaitGroup
		refused := make(chan error, 10)
		for i := range 10 {
			wg.Go(func() {
				change := m.Restart
				if i == 9 {
					change = m.Remove
				}
				if err := change(context.Background(), "guarded"); err != nil {
					refused <- err
				}
			})
		}
		wg.Wait()
		if len(refused) != 9 {
			t.Errorf("%d calls were refused, want all but one", len(refused))
		}
		for range len(refused) {
			if err := <-refused; !strings.Contains(err.Error(), "it is being removed or restarted already") {
				t.Error(err)
			}
		}
		l.mustEnd()
	})
}

// A controller is removed at the moment when its process loses the lease and becomes a follower again. It stays
// removed, and is not rebuilt.
func TestRemoveWhileTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, surviving())
		builds := 0
		guarded(t, m, &builds, func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				// It works until the tenure is over. It then ignores its context for a while, but not for as long as
				// the others wait.
				select {
				case <-ctx.Done():
					time.Sleep(time.Second)
				case <-time.After(10 * time.Second):
				}
			}
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		time.Sleep(time.Minute)
		w.refuse(leases)
		for len(l.logs.with("renew the leader lease")) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(7 * time.Second) // the tenure ends within the next few seconds
		if err := m.Remove(t.Context(), "guarded"); err != nil {
			t.Error(err)
		}
		w.refuse(nil)
		time.Sleep(time.Minute)
		if n := m.InFlight(); n != 0 || builds != 1 {
			t.Errorf("%d in flight, %d builds", n, builds)
		}
		if err := m.Restart(t.Context(), "guarded"); err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("it is there: %v", err)
		}
		l.mustEnd()
	})
}
