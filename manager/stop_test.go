package manager_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

func elected() manager.Options {
	return manager.Options{
		LeaderElection: manager.LeaderElection{Enabled: true, Name: "flyball-manager", Identity: "host-1"},
	}
}

// At the stop, work in flight finishes with a context that is not cancelled, then events are sent, and then the lease
// is released.
func TestStopLetsWorkFinishThenEventsThenTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		started := make(chan struct{}, 1)
		onConfigMaps(t, m, "slow", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			started <- struct{}{}
			time.Sleep(2 * time.Second)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "result"}}
			if r.Name != "work" {
				return reconcile.Result{}, nil
			}
			_, err := clientset(m).CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
			m.GetEventRecorderFor("slow").Eventf(cm, corev1.EventTypeNormal, "Done", "created %s", cm.Name)
			return reconcile.Result{}, err
		})
		w.create(t, m, "work")
		l := live(t, m)
		<-started
		time.Sleep(time.Second)
		stopped := time.Now()
		l.mustEnd()
		if took := time.Since(stopped); took != time.Second {
			t.Errorf("stopped after %v, want the second that the work still took", took)
		}
		writes := w.writes("configmaps", "events", "leases")
		last := writes[len(writes)-1]
		writes = w.writes("configmaps", "events") // without the renewals
		tail := writes[len(writes)-3:]
		if tail[0] != "create configmaps default/result 201" || !strings.HasPrefix(tail[1], "create events") ||
			!strings.HasPrefix(tail[2], "create events") || !strings.HasPrefix(last, "update leases") {
			t.Errorf("the last writes were %q, %q, want the work's, two events, the lease", tail, last)
		}
		lease, err := clientset(m).CoordinationV1().Leases("kube-system").Get(t.Context(), "flyball-manager",
			metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != "" {
			t.Errorf("lease %+v, %v: want it released", lease, err)
		}
		list, err := clientset(m).CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var messages []string
		for _, e := range list.Items {
			messages = append(messages, e.Message)
		}
		slices.Sort(messages)
		if want := []string{
			"created result", "host-1 became leader",
			"host-1 stopped leading",
		}; !slices.Equal(messages, want) {
			t.Errorf("events %q, want %q", messages, want)
		}
		if err := m.Add(runnable{name: "late", run: untilStopped}); !errors.Is(err, manager.ErrStopped) {
			t.Errorf("Add after the stop: %v", err)
		}
	})
}

func TestWorkIsCutShortAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		onConfigMaps(t, m, "slow", func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		})
		w.create(t, m, "work")
		l := live(t, m)
		stopped := time.Now()
		err := l.end()
		if took := time.Since(stopped); took != 10*time.Second {
			t.Errorf("stopped after %v, want 10s", took)
		}
		if told := l.logs.with("Waiting for work in flight"); len(told) != 2 ||
			!strings.Contains(told[1], `slow: default/work (running for 6s)`) {
			t.Errorf("while it waits it says %q", told)
		}
		var undone *manager.UndoneError
		if !errors.As(err, &undone) ||
			err.Error() != "left undone: work cut short after 10s: slow: default/work (running for 10s)" {
			t.Errorf("error %v", err)
		}
		writes := w.writes("leases")
		if last := writes[len(writes)-1]; !strings.HasPrefix(last, "update leases") {
			t.Errorf("last write to the lease: %s", last)
		}
	})
}

func TestStuckWorkIsNamedAndKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		release := make(chan struct{})
		onConfigMaps(t, m, "stubborn", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "work" {
				<-release // deaf to its context
			}
			return reconcile.Result{}, nil
		})
		w.create(t, m, "work")
		l := live(t, m)
		stopped := time.Now()
		err := l.end()
		if took := time.Since(stopped); took != 12*time.Second {
			t.Errorf("stopped after %v, want the deadline and two seconds more", took)
		}
		for _, part := range []string{
			"work cut short after 10s: stubborn",
			"controller stubborn: 1 of its reconciles did not end in time: default/work",
		} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error is not one line: %q", err)
		}
		close(release)
	})
}

func TestRunnableThatDoesNotReturnKeepsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		release := make(chan struct{})
		if err := m.Add(
			runnable{name: "deaf", run: func(context.Context) error { <-release; return nil }},
		); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		stopped := time.Now()
		err := l.end()
		if took := time.Since(stopped); took != 13*time.Second {
			t.Errorf("stopped after %v, want 13s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "still running 3s later: deaf") ||
			!errors.Is(err, leader.ErrWorkRemains) {
			t.Errorf("error %v", err)
		}
		lease, err := clientset(m).CoordinationV1().Leases("kube-system").Get(t.Context(), "flyball-manager",
			metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != "host-1" {
			t.Errorf("lease %+v, %v: it was released beside running work", lease, err)
		}
		close(release)
	})
}

func TestLostLeaseStopsTheWorkAndTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		var ended error
		var endedAt time.Time
		onConfigMaps(t, m, "guarded", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name != "work" {
				return reconcile.Result{}, nil
			}
			<-ctx.Done()
			endedAt = time.Now()
			// Even a writer that ignores that its context is over cannot begin another write.
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "too-late"}}
			_, ended = clientset(m).CoreV1().ConfigMaps("default").Create(context.WithoutCancel(ctx), cm,
				metav1.CreateOptions{})
			return reconcile.Result{}, ctx.Err()
		})
		w.create(t, m, "work")
		l := live(t, m)
		time.Sleep(time.Minute)
		cut := time.Now()
		w.refuse(leases)
		err := <-l.done
		if !errors.Is(err, leader.ErrLost) {
			t.Errorf("error %v", err)
		}
		if held := endedAt.Sub(cut); held > 10*time.Second || held < 8*time.Second {
			t.Errorf("work was cancelled %v after the last renewal could succeed, want 8 to 10 s", held)
		}
		if !errors.Is(ended, leader.ErrLost) {
			t.Errorf("a write after the lease was lost: %v", ended)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error is not one line: %q", err)
		}
	})
}

func TestLostLeaseDoesNotWaitForWorkThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, elected())
		release := make(chan struct{})
		if err := m.Add(
			runnable{name: "deaf", run: func(context.Context) error { <-release; return nil }},
		); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		w.refuse(leases)
		start := time.Now()
		err := <-l.done
		// Ten seconds until the tenure ends, five until others may lead, and three for the work that ignores its
		// context.
		if took := time.Since(start); took > 18*time.Second || !errors.Is(err, leader.ErrLost) ||
			!strings.Contains(err.Error(), "deaf") {
			t.Errorf("%v after %v", err, took)
		}
		close(release)
	})
}

func TestFollowerTakesOverWithWarmCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var lives []*life
		leaders := make(chan string, 2)
		for _, name := range []string{"host-1", "host-2"} {
			o := elected()
			o.LeaderElection.Identity = name
			m := w.manager(t, o)
			onConfigMaps(t, m, "c",
				func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
			err := m.Add(runnable{name: "leader", run: func(ctx context.Context) error {
				for _, h := range m.Informers().Health() {
					if !h.Synced {
						t.Errorf("%s leads with a cold cache: %+v", name, h)
					}
				}
				leaders <- name
				return untilStopped(ctx)
			}})
			if err != nil {
				t.Fatal(err)
			}
			lives = append(lives, live(t, m))
		}
		first := <-leaders
		if first != "host-1" {
			t.Fatalf("%s leads, want the one that came first", first)
		}
		time.Sleep(time.Minute)
		if err := lives[1].Ready(); err != nil {
			t.Errorf("a follower with warm caches is not ready: %v", err)
		}
		stopped := time.Now()
		lives[0].mustEnd()
		if second := <-leaders; second != "host-2" || time.Since(stopped) > 2400*time.Millisecond {
			t.Errorf("%s took over after %v", second, time.Since(stopped))
		}
		lives[1].mustEnd()
	})
}

func TestFailingRunnableStopsTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld(t).manager(t, manager.Options{})
		broken := errors.New("disk full")
		var stoppedInOrder bool
		if err := errors.Join(
			m.Add(runnable{name: "good", run: func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				stoppedInOrder = true
				return nil
			}}),
			m.Add(runnable{name: "done", run: func(context.Context) error { return nil }}),
			m.Add(runnable{name: "bad", free: true, run: func(context.Context) error {
				time.Sleep(time.Minute)
				return broken
			}}),
		); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		err := <-l.done
		if !errors.Is(err, broken) || err.Error() != "bad: disk full" || !stoppedInOrder {
			t.Errorf("error %v, others stopped in order: %v", err, stoppedInOrder)
		}
	})
}

func TestAddWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newWorld(t).manager(t, manager.Options{})
		l := live(t, m)
		ran := make(chan struct{}, 1)
		late := runnable{name: "late", run: func(ctx context.Context) error {
			ran <- struct{}{}
			return untilStopped(ctx)
		}}
		if err := m.Add(late); err != nil {
			t.Fatal(err)
		}
		<-ran
		if err := m.Add(late); err == nil || !strings.Contains(err.Error(), "late") {
			t.Errorf("a second runnable of that name: %v", err)
		}
		if err := m.Run(t.Context()); err == nil {
			t.Error("a second Run returned nil")
		}
		l.mustEnd()
	})
}

// Every round stops a manager at another random moment. synctest fails if a goroutine is left.
func TestStopAtRandomMoments(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t)
			o := manager.Options{}
			if seed%2 == 0 {
				o = elected()
			}
			m := w.manager(t, o)
			busy := time.Duration(random.Int64N(int64(time.Second)))
			onConfigMaps(t, m, "c", func(context.Context, reconcile.Request) (reconcile.Result, error) {
				time.Sleep(busy)
				return reconcile.Result{RequeueAfter: time.Second}, nil
			})
			w.create(t, m, "work")
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- m.Run(ctx) }()
			if wait := random.IntN(5); wait > 0 {
				time.Sleep(time.Duration(random.Int64N(int64(wait) * int64(time.Second))))
			}
			stopped := time.Now()
			stop()
			if err := <-done; err != nil || time.Since(stopped) > 10*time.Second {
				t.Errorf("seed %d: %v after %v", seed, err, time.Since(stopped))
			}
		})
	}
}

func TestTwoManagersInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var lives []*life
		for i := range 2 {
			m := w.manager(t, manager.Options{})
			onConfigMaps(t, m, "same-name", func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, nil
			})
			if i == 0 {
				w.create(t, m, "work")
			}
			lives = append(lives, live(t, m))
		}
		for i, l := range lives {
			if err := l.Ready(); err != nil {
				t.Errorf("manager %d: %v", i, err)
			}
			l.mustEnd()
		}
	})
}

func ExampleUndoneError() {
	err := &manager.UndoneError{Left: []error{
		errors.New("work cut short after 10s: deployment-controller"),
		errors.Join(errors.New("a"), errors.New("b")),
	}}
	fmt.Println(err)
	// Output: left undone: work cut short after 10s: deployment-controller; a; b
}
