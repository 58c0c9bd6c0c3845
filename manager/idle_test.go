package manager_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// idleWorld returns the config of an API server whose watches are slow, and which has ConfigMaps of these names.
func idleWorld(t *testing.T, o localapi.Options, names ...string) *rest.Config {
	t.Helper()
	return laggingWorld(t, 40*time.Millisecond, o, names...) // much longer than between two polls
}

func laggingWorld(t *testing.T, lag time.Duration, o localapi.Options, names ...string) *rest.Config {
	t.Helper()
	o.Gate = gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
		select {
		case <-time.After(lag):
		case <-ctx.Done():
		}
		return gate.Verdict{}
	}}
	server, err := localapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range names {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := server.Seed(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	return server.RESTConfig()
}

func newManager(t *testing.T, config *rest.Config) *manager.Manager {
	t.Helper()
	m, err := manager.New(config, manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// climb adds a controller that moves each ConfigMap one step further at every reconcile, up to the last step.
func climb(t *testing.T, m *manager.Manager, last int) *reconcile.Controller[reconcile.Request] {
	t.Helper()
	steps := stepsOf(t, m, last)
	follow(t, m, steps)
	return steps
}

// stepsOf returns the controller of climb, without sources.
func stepsOf(t *testing.T, m *manager.Manager, last int) *reconcile.Controller[reconcile.Request] {
	t.Helper()
	return reconcile.New("steps",
		reconcile.Func[reconcile.Request](func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			maps := clientset(m).CoreV1().ConfigMaps(r.Namespace)
			cm, err := maps.Get(ctx, r.Name, metav1.GetOptions{})
			if err != nil {
				return reconcile.Result{}, err
			}
			step := 0
			if _, err := fmt.Sscan(cm.Data["step"], &step); err != nil && cm.Data["step"] != "" {
				return reconcile.Result{}, err
			}
			if step == last {
				return reconcile.Result{}, nil
			}
			patch := fmt.Sprintf(`{"data":{"step":"%d"}}`, step+1)
			_, err = maps.Patch(ctx, r.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return reconcile.Result{}, err
		}), reconcile.Options[reconcile.Request]{})
}

func stepOf(t *testing.T, config *rest.Config, name string) string {
	t.Helper()
	maps := clientset(newManager(t, config)).CoreV1().ConfigMaps("default")
	cm, err := maps.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm.Data["step"]
}

// TestRunUntilIdleConverges: each step is started by the event of the step before it. That event arrives when all
// queues are empty.
func TestRunUntilIdleConverges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := idleWorld(t, localapi.Options{}, "a", "b")
		m := newManager(t, config)
		climb(t, m, 3)
		var seen []manager.Progress
		s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{
			Progress: func(p manager.Progress) { seen = append(seen, p) }, ProgressEvery: 10 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if got := stepOf(t, config, name); got != "3" {
				t.Errorf("%s is at step %q, want 3", name, got)
			}
		}
		if s.Processed < 8 || s.Errors != 0 || len(s.Failed)+len(s.DueLater)+s.Pending != 0 || s.Peak < 1 ||
			s.Controllers[0].Name != "steps" {
			t.Errorf("summary %+v", s)
		}
		if len(seen) < 3 || seen[len(seen)-1].Processed == 0 {
			t.Errorf("progress %+v", seen)
		}
		again := newManager(t, config)
		climb(t, again, 3)
		if s, err = again.RunUntilIdle(t.Context(), manager.IdleOptions{}); err != nil || s.Processed < 2 {
			t.Errorf("second run: %+v, %v", s, err)
		}
	})
}

// slowSink is a logger in which one message takes long, so that its caller is delayed.
type slowSink struct {
	message string
	pause   time.Duration
	said    *atomic.Int64
}

func (slowSink) Init(klog.RuntimeInfo) {}

func (slowSink) Enabled(int) bool { return true }

func (s slowSink) Info(_ int, message string, _ ...any) {
	if strings.HasPrefix(message, s.message) {
		s.said.Add(1)
		time.Sleep(s.pause)
	}
}

func (slowSink) Error(error, string, ...any) {}

func (s slowSink) WithValues(...any) klog.LogSink { return s }

func (s slowSink) WithName(string) klog.LogSink { return s }

// TestRunUntilIdleBetweenCacheAndHandlers has an informer that is slow between the update of its cache and the calls of
// its handlers, because it logs that an index function failed. RunUntilIdle must wait for it, although the process's
// own write is in the cache and no handler has anything to do.
func TestRunUntilIdleBetweenCacheAndHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := idleWorld(t, localapi.Options{}, "a")
		m := newManager(t, config)
		climb(t, m, 3)
		maps, err := informer.For[*corev1.ConfigMap](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		failsOnOdd := func(cm *corev1.ConfigMap) ([]string, error) {
			if step := cm.Data["step"]; step == "1" || step == "3" {
				return nil, errors.New("an odd step")
			}
			return nil, nil
		}
		if err := maps.AddIndex("even", failsOnOdd); err != nil {
			t.Fatal(err)
		}
		var said atomic.Int64
		ctx := klog.NewContext(t.Context(), klog.New(slowSink{"Index function failed", time.Second, &said}))
		if _, err := m.RunUntilIdle(ctx, manager.IdleOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := stepOf(t, config, "a"); got != "3" || said.Load() != 2 {
			t.Errorf("at step %q, want 3; %d pauses, want 2", got, said.Load())
		}
	})
}

// TestRunUntilIdleIsPatientWithASlowWatch checks that RunUntilIdle waits for the event of a write as long as necessary
// if the event is certain to come. If the cache has a label selector, it may not come, and the wait is about a second.
func TestRunUntilIdleIsPatientWithASlowWatch(t *testing.T) {
	for _, c := range []struct {
		name, selector, step string
		atLeast, lessThan    time.Duration
	}{
		{"all objects", "", "2", 30 * time.Second, time.Minute},
		{"labelled objects", "app=none", "1", time.Second, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := laggingWorld(t, 15*time.Second, localapi.Options{NoKubernetesService: true}, "a")
				m := newManager(t, config)
				steps := stepsOf(t, m, 2)
				if c.selector == "" {
					follow(t, m, steps)
				} else {
					maps, err := informer.ForOptions[*corev1.ConfigMap](m.Informers(),
						informer.InformerOptions{LabelSelector: c.selector})
					if err != nil {
						t.Fatal(err)
					}
					feed(t, m, steps, maps)
					steps.Enqueue(
						reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}},
					)
				}
				s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := stepOf(t, config, "a"); got != c.step {
					t.Errorf("at step %q, want %s", got, c.step)
				}
				if s.Duration < c.atLeast || s.Duration >= c.lessThan {
					t.Errorf("it took %v, want %v to %v", s.Duration, c.atLeast, c.lessThan)
				}
			})
		})
	}
}

// TestRunUntilIdleAwaitsPacedKeys: a key that its controller puts off, so that it does not run too often, counts as
// work to do now.
func TestRunUntilIdleAwaitsPacedKeys(t *testing.T) {
	for name, o := range map[string]reconcile.Options[reconcile.Request]{
		"debounced": {Debounce: 2 * time.Second}, "at intervals": {MinInterval: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newManager(t, idleWorld(t, localapi.Options{NoKubernetesService: true}, "a"))
				runs := 0
				follow(t, m,
					reconcile.New("paced",
						reconcile.Func[reconcile.Request](func(context.Context,
							reconcile.Request,
						) (reconcile.Result, error) {
							if runs++; runs <= 3 {
								return reconcile.Result{}, errors.New("not yet")
							}
							return reconcile.Result{RequeueAfter: time.Hour}, nil
						}), o))
				s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{})
				if err != nil || runs != 4 || len(s.DueLater) != 1 {
					t.Errorf("%d runs, want 4: %+v, %v", runs, s, err)
				}
			})
		})
	}
}

func TestRunUntilIdleWithNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{NoKubernetesService: true}))
		onConfigMaps(t, m, "none", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		})
		s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{})
		if err != nil || s.Processed != 0 || s.Duration > 500*time.Millisecond {
			t.Errorf("summary %+v, %v", s, err)
		}
		if _, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{}); err == nil {
			t.Error("it ran twice")
		}
	})
}

// passing is a controller whose first key is reconciled between two looks at its work.
type passing struct{ looks atomic.Int64 }

func (p *passing) Name() string                  { return "passing" }
func (p *passing) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (p *passing) Stats() reconcile.Stats {
	return reconcile.Stats{Syncs: uint64(min(p.looks.Load(), 1))}
}

func (p *passing) Work() reconcile.Work {
	p.looks.Add(1)
	return reconcile.Work{Started: true}
}

// TestRunUntilIdleLooksAgainAtOnce: if a poll finds that work has moved, the next poll follows at once, not at the
// interval for delayed keys.
func TestRunUntilIdleLooksAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{NoKubernetesService: true}))
		if err := m.Add(&passing{}); err != nil {
			t.Fatal(err)
		}
		s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{})
		if err != nil || s.Processed != 1 || s.Duration > 10*time.Millisecond {
			t.Errorf("summary %+v, %v", s, err)
		}
	})
}

// TestRunUntilIdleDueLater: a key that is due later is listed with its time. With Wait, it is waited for.
func TestRunUntilIdleDueLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := idleWorld(t, localapi.Options{}, "a")
		run := func(o manager.IdleOptions) (s manager.Summary, runs int) {
			m := newManager(t, config)
			onConfigMaps(t, m, "later", func(context.Context, reconcile.Request) (reconcile.Result, error) {
				if runs++; runs == 1 {
					return reconcile.Result{RequeueAfter: 5 * time.Minute}, nil
				}
				return reconcile.Result{}, nil
			})
			s, err := m.RunUntilIdle(t.Context(), o)
			if err != nil {
				t.Error(err)
			}
			return s, runs
		}
		s, runs := run(manager.IdleOptions{})
		if len(s.DueLater) != 1 || s.DueLater[0].Key != "default/a" || s.DueLater[0].Controller != "later" ||
			runs != 1 {
			t.Fatalf("after %d runs: %+v", runs, s)
		}
		if in := time.Until(s.DueLater[0].Due); in < 4*time.Minute || in > 5*time.Minute {
			t.Errorf("due in %v, want about five minutes", in)
		}
		s, runs = run(manager.IdleOptions{Wait: true})
		if len(s.DueLater) != 0 || runs != 2 || s.Duration < 5*time.Minute {
			t.Errorf("waited for, after %d runs: %+v", runs, s)
		}
	})
}

// TestRunUntilIdleFailures: a key that fails is retried, and then listed with its error and its causes. The other keys
// are processed.
func TestRunUntilIdleFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{}, "a", "b", "c"))
		runs := map[string]int{}
		broken := errors.New("the disk is full")
		onConfigMaps(t, m, "fails", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			runs[r.Name]++
			switch {
			case r.Name == "a":
				return reconcile.Result{}, broken
			case r.Name == "b" && runs["b"] <= 2:
				return reconcile.Result{}, errors.New("not yet")
			case r.Name == "c":
				return reconcile.Result{}, reconcile.Terminal(errors.New("senseless"))
			}
			return reconcile.Result{}, nil
		})
		s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{Retries: 3})
		var failed *manager.FailedError
		if !errors.As(err, &failed) || !errors.Is(err, broken) ||
			!strings.Contains(err.Error(), "fails default/a: the disk is full") {
			t.Errorf("error is %v", err)
		}
		if runs["a"] != 4 || runs["b"] != 3 || runs["c"] != 1 {
			t.Errorf("runs %v, want a 4 times, b 3 times, c once", runs)
		}
		if len(s.Failed) != 2 || s.Failed[0].Key != "default/a" || s.Failed[0].Attempts != 4 ||
			len(s.Failed[0].Causes) == 0 || s.Failed[1].Key != "default/c" {
			t.Errorf("failed: %+v", s.Failed)
		}
	})
}

// TestRunUntilIdleDeadline checks that no reconcile begins after the deadline, that those in flight finish, and that
// the summary has both the work that was done and the work that is left.
func TestRunUntilIdleDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{}, "a", "b", "c", "d"))
		onConfigMaps(t, m, "slow", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			if r.Name == "b" {
				time.Sleep(5 * time.Second)
			}
			return reconcile.Result{RequeueAfter: time.Hour}, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s, err := m.RunUntilIdle(ctx, manager.IdleOptions{Wait: true})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want the deadline", err)
		}
		if s.Processed != 2 || s.Errors != 0 || s.Pending != 2 || len(s.DueLater) != 1 || s.Duration < 5*time.Second {
			t.Errorf("summary %+v", s)
		}
		if want := []manager.Key{
			{Controller: "slow", Key: "default/c"},
			{Controller: "slow", Key: "default/d"},
		}; !reflect.DeepEqual(s.Left, want) {
			t.Errorf("left: %v, want %v", s.Left, want)
		}
	})
}

// TestRunUntilIdleLooksBeforeItStops checks that the summary has the keys that are due later, even if no poll happened
// at the moment of the deadline.
func TestRunUntilIdleLooksBeforeItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{NoKubernetesService: true}, "a"))
		onConfigMaps(t, m, "later", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		away := func(manager.Progress) { time.Sleep(1500 * time.Millisecond) }
		s, err := m.RunUntilIdle(ctx, manager.IdleOptions{Wait: true, Progress: away, ProgressEvery: time.Nanosecond})
		if !errors.Is(err, context.DeadlineExceeded) || len(s.DueLater) != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{NoKubernetesService: true}))
		var keys []string
		onConfigMaps(t, m, "triggered", func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			keys = append(keys, r.String())
			return reconcile.Result{}, nil
		})
		wanted := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "x", Name: "y"}}
		if err := m.Trigger([]string{"triggered"}, wanted, wanted); err != nil {
			t.Fatal(err)
		}
		if err := m.Trigger([]string{"nobody"}, wanted); err == nil || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("trigger of nobody: %v", err)
		}
		if _, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{}); err != nil {
			t.Fatal(err)
		}
		if len(keys) != 1 || keys[0] != "x/y" {
			t.Errorf("reconciled %q, want x/y once", keys)
		}
	})
}

// TestTenantsOfManagers: two managers on one store, each bound to a tenant, reconcile their own objects alone.
func TestTenantsOfManagers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		defer store.Close()
		for _, tenant := range []string{"a", "ab"} {
			config := idleWorld(t, localapi.Options{Storage: store, Tenant: tenant, NoKubernetesService: true}, "same",
				"of-"+tenant)
			m := newManager(t, config)
			climb(t, m, 1)
			s, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{})
			if err != nil || s.Processed != 4 {
				t.Errorf("tenant %s: %+v, %v", tenant, s, err)
			}
			if got := stepOf(t, config, "same"); got != "1" {
				t.Errorf("tenant %s: step %q", tenant, got)
			}
		}
	})
}

// TestRunUntilIdleSeesDeletions: RunUntilIdle waits for a deletion, although its response has no resource version.
func TestRunUntilIdleSeesDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, idleWorld(t, localapi.Options{NoKubernetesService: true}, "a"))
		gone := 0
		onConfigMaps(t, m, "deletes", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			err := clientset(m).CoreV1().ConfigMaps(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{})
			if err != nil {
				gone++
			}
			return reconcile.Result{}, nil
		})
		if _, err := m.RunUntilIdle(t.Context(), manager.IdleOptions{}); err != nil || gone != 1 {
			t.Errorf("the deletion was seen %d times, want once (%v)", gone, err)
		}
	})
}
