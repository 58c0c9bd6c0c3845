package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// steps is a list of what happened, in order.
type steps struct {
	mu   sync.Mutex
	list []string
}

func (s *steps) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
}

func (s *steps) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// The start and the stop happen in the order that the package comment draws.
func TestOrderOfStartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		o.HealthAddr = "0"
		m := w.manager(t, o)
		s := &steps{}
		w.refuse(func(r *gate.Request) gate.Verdict {
			switch {
			case r.Resource == "configmaps" && r.Verb == "list":
				time.Sleep(time.Second) // the cache fills slowly
				s.add("cache filled")
			case r.Resource == "leases" && r.Verb == "create":
				s.add("lease taken")
			}
			return gate.Verdict{}
		})
		maps, err := informer.For[*corev1.ConfigMap](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		add := func(name string, free bool) {
			err := m.Add(runnable{name: name, free: free, run: func(ctx context.Context) error {
				s.add(name + " runs")
				<-ctx.Done()
				s.add(name + " is told")
				w.create(t, m, "last-of-"+name)
				time.Sleep(time.Second)
				if _, ok := maps.Get("default", "last-of-"+name); !ok {
					t.Errorf("the caches ended before %s", name)
				}
				s.add(name + " has returned")
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		add("free", true)
		add("guarded", false)
		l := live(t, m)
		time.Sleep(5 * time.Second)
		w.refuse(func(r *gate.Request) gate.Verdict {
			switch {
			case r.Resource == "leases" && slices.Contains(s.all(), "event recorded"):
				s.add("lease given back")
			case r.Resource == "events":
				s.add("event recorded")
			}
			return gate.Verdict{}
		})
		l.mustEnd()
		got := s.all()
		start, stop := got[:4], got[4:]
		if want := []string{"free runs", "cache filled", "lease taken", "guarded runs"}; !slices.Equal(start, want) {
			t.Errorf("started as %q, want %q", start, want)
		}
		slices.Sort(stop[:2]) // both contexts end at the same time
		slices.Sort(stop[2:4])
		want := []string{
			"free is told", "guarded is told", "free has returned", "guarded has returned",
			"event recorded", "lease given back",
		}
		if !slices.Equal(stop, want) {
			t.Errorf("stopped as %q, want %q", stop, want)
		}
	})
}

func TestControllersComeAndGoWhileTheManagerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{Metrics: metrics.New()})
		l := live(t, m)
		for round := range 3 {
			seen := make(chan string, 10)
			onConfigMaps(t, m, "c", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				seen <- r.Name
				return reconcile.Result{}, nil
			})
			w.create(t, m, fmt.Sprintf("work-%d", round))
			synctest.Wait()
			if got := len(seen); got < round+1 {
				t.Errorf("round %d: %d reconciles", round, got)
			}
			if err := m.Remove(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
			if err := m.Remove(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "remove c: unknown") {
				t.Errorf("removed twice: %v", err)
			}
		}
		if err := m.Ready(); err != nil {
			t.Error(err)
		}
		l.mustEnd()
	})
}

func TestRemoveLetsWorkFinishAndNamesWhatDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		free := make(chan struct{})
		onConfigMaps(t, m, "slow", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name != "work" {
				return reconcile.Result{}, nil
			}
			time.Sleep(5 * time.Second)
			return reconcile.Result{}, ctx.Err()
		})
		onConfigMaps(t, m, "stuck", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				<-free
			}
			return reconcile.Result{}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		if n := m.InFlight(); n != 2 {
			t.Errorf("%d in flight, want 2", n)
		}
		begin := time.Now()
		if err := m.Remove(t.Context(), "slow"); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("removed with %v after %v, want the five seconds of its work", err, time.Since(begin))
		}
		begin = time.Now()
		err := m.Remove(t.Context(), "stuck")
		if err == nil || !strings.Contains(err.Error(), "default/work") || time.Since(begin) != 12*time.Second {
			t.Errorf("removed with %v after %v", err, time.Since(begin))
		}
		close(free)
		l.mustEnd()
	})
}

// A controller is restarted while the manager runs, and its cache stays. A controller that is stuck is not restarted.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		builds, runs, hang := 0, 0, make(chan struct{})
		guarded(t, m, &builds, func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			switch r.Name {
			case "work":
				runs++
				time.Sleep(3 * time.Second)
			case "stuck":
				<-hang
			}
			return reconcile.Result{}, nil
		})
		if err := m.Add(runnable{name: "once", run: untilStopped}); err != nil {
			t.Fatal(err)
		}
		w.create(t, m, "work")
		if err := m.Restart(t.Context(), "guarded"); err != nil || builds != 1 {
			t.Errorf("before the start: %v, %d builds", err, builds)
		}
		l := live(t, m)
		for want := 2; want < 5; want++ {
			begin := time.Now()
			if err := m.Restart(t.Context(), "guarded"); err != nil || time.Since(begin) != 3*time.Second {
				t.Errorf("%v after %v, want the three seconds of the work in flight", err, time.Since(begin))
			}
			synctest.Wait()
			if builds != want || runs != want {
				t.Errorf("%d builds, %d runs, want %d", builds, runs, want)
			}
		}
		if s := m.Informers().Stats()["configmaps"]; s.Lists != 1 {
			t.Errorf("the cache listed %d times", s.Lists)
		}
		for name, says := range map[string]string{"nobody": "known: guarded, once", "once": "manager.Rebuilt"} {
			if err := m.Restart(t.Context(), name); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("restart %s: %v", name, err)
			}
		}
		w.create(t, m, "stuck")
		time.Sleep(4 * time.Second) // the work in flight is done
		if err := m.Restart(t.Context(), "guarded"); err == nil || !strings.Contains(err.Error(), "default/stuck") ||
			builds != 4 {
			t.Errorf("restarted beside stuck work: %v, %d builds", err, builds)
		}
		close(hang)
		l.stop()
		<-l.done
	})
}

func TestRemoveBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld(t).manager(t, elected())
		ran := false
		if err := m.Add(runnable{name: "r", run: func(context.Context) error { ran = true; return nil }}); err != nil {
			t.Fatal(err)
		}
		if err := m.Remove(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		live(t, m).mustEnd()
		if ran {
			t.Error("what was removed ran")
		}
		if err := m.Add(nil); err == nil {
			t.Error("a nil runnable was taken")
		}
	})
}

// surviving returns the options of a manager that continues when the lease is lost.
func surviving() manager.Options {
	o := elected()
	o.LeaderElection.Survive = true
	return o
}

// guarded adds a controller that is rebuilt for each tenure, and counts the builds.
func guarded(t *testing.T, m *manager.Manager, builds *int, f reconcile.Func[reconcile.Request]) {
	t.Helper()
	maps, err := informer.For[*corev1.ConfigMap](m.Informers())
	if err != nil {
		t.Fatal(err)
	}
	r, err := manager.Rebuilt(func() (manager.Runnable, error) {
		*builds++
		c := reconcile.New("guarded", f, reconcile.Options[reconcile.Request]{})
		return c, c.Watch(source.Kind(maps, handler.EnqueueObject[*corev1.ConfigMap]()))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(r); err != nil {
		t.Fatal(err)
	}
}

// A process loses the lease and wins it again three times. Its caches list only once.
func TestLostLeaseCanBeSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, surviving())
		builds := 0
		guarded(t, m, &builds, func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				<-ctx.Done() // always in flight
			}
			return reconcile.Result{}, ctx.Err()
		})
		w.create(t, m, "work")
		l := live(t, m)
		for range 3 {
			time.Sleep(time.Minute)
			if n := m.InFlight(); n != 1 {
				t.Fatalf("%d reconciles in flight, want 1: %v", n, m.Ready())
			}
			w.refuse(leases)
			time.Sleep(11 * time.Second)
			if n := m.InFlight(); n != 0 {
				t.Errorf("%d reconciles in flight without the lease", n)
			}
			if code, body := get(m, "/readyz"); code != 200 || !strings.Contains(body, "[+]leader: waiting, ") {
				t.Errorf("while the lease is out of reach: %d %s", code, body)
			}
			w.refuse(nil)
		}
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil || builds != 4 {
			t.Errorf("%v after %d builds, want 4", err, builds)
		}
		if s := m.Informers().Stats()["configmaps"]; s.Lists != 1 {
			t.Errorf("the cache listed %d times", s.Lists)
		}
		l.stop()
		if err := <-l.done; err == nil || !strings.Contains(err.Error(), "guarded: default/work (running for") {
			t.Errorf("the stop during the fourth tenure: %v", err)
		}
	})
}

// A process whose guarded work ignores its context cannot become a follower. Run returns while the lease has not
// expired yet.
func TestLostLeaseIsNotSurvivedBesideRunningWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, surviving())
		free, builds := make(chan struct{}), 0
		guarded(t, m, &builds, func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				<-free
			}
			return reconcile.Result{}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		w.refuse(leases)
		err := <-l.done
		if !errors.Is(err, leader.ErrLost) || !strings.Contains(err.Error(), "default/work") || builds != 1 {
			t.Errorf("%v after %d builds", err, builds)
		}
		close(free)
	})
}

func TestSurvivalNeedsRebuilders(t *testing.T) {
	m := newWorld(t).manager(t, surviving())
	err := m.Add(runnable{name: "once", run: untilStopped})
	if err == nil || !strings.Contains(err.Error(), "manager.Rebuilt") {
		t.Errorf("error %v does not say what to do", err)
	}
	if err := m.Add(runnable{name: "free", free: true, run: untilStopped}); err != nil {
		t.Error(err)
	}
	broken := errors.New("no disk")
	if _, err := manager.Rebuilt(func() (manager.Runnable, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
