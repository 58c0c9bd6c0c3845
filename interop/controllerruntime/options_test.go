package controllerruntime_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
	own "github.com/flyball-dev/flyball/manager"
)

// unguarded is a runnable that followers run, too.
type unguarded struct{ manager.RunnableFunc }

func (unguarded) NeedLeaderElection() bool { return false }

// TestClustersAreCaches: an added cluster runs on followers, too, and before the runnables, which can read its cache at
// once. A cluster that is added later runs at once.
func TestClustersAreCaches(t *testing.T) {
	o := manager.Options{LeaderElection: true, LeaderElectionID: "op", LeaderElectionNamespace: "a"}
	bothManagers(t, o, func(p *process) {
		held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "op"}}
		held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds = new("another"), new(int32(3600))
		held.Spec.RenewTime, held.Spec.AcquireTime = new(metav1.NowMicro()), new(metav1.NowMicro())
		p.must(p.direct.Create(p.ctx, held))
		other := func() cluster.Cluster {
			c, err := cluster.New(p.api.RESTConfig())
			p.must(err)
			return c
		}
		early, late := other(), other()
		p.must(p.Add(early))
		read := make(chan error, 1)
		p.must(p.Add(unguarded{func(ctx context.Context) error {
			read <- early.GetClient().Get(ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.ConfigMap{})
			return nil
		}}))
		p.start()
		p.must(<-read)
		p.must(p.Add(late))
		synctest.Wait()
		p.must(late.GetClient().Get(p.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &corev1.ConfigMap{}))
		if closed.Is(p.Elected()) {
			p.t.Error("elected while another has the lease")
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// brokenCache is a cache that does not start.
type brokenCache struct{ cache.Cache }

var errBroken = errors.New("broken")

func (brokenCache) Start(context.Context) error           { return errBroken }
func (brokenCache) WaitForCacheSync(context.Context) bool { return true }
func (b brokenCache) GetCache() cache.Cache               { return b }
func (brokenCache) NeedLeaderElection() bool              { return true }

// TestErrorsOfStart: Start returns the errors of the runnables unchanged. An error that a runnable returns after the
// stop is ignored.
func TestErrorsOfStart(t *testing.T) {
	fails := func(ctx context.Context, stopped bool) error {
		if stopped {
			<-ctx.Done()
		}
		return errBroken
	}
	for name, c := range map[string]struct {
		add  manager.Runnable
		want error
	}{
		"a runnable": {
			manager.RunnableFunc(func(ctx context.Context) error { return fails(ctx, false) }), errBroken,
		},
		"a runnable after the stop": {
			manager.RunnableFunc(func(ctx context.Context) error { return fails(ctx, true) }), nil,
		},
		"a cluster": {brokenCache{}, errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			bothManagers(t, manager.Options{}, func(p *process) {
				p.must(p.Add(c.add))
				ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
				defer cancel()
				if err := p.Start(ctx); err != c.want { //nolint:errorlint // As it is.
					p.t.Errorf("Start: %v, want %v", err, c.want)
				}
				if err := p.Start(ctx); err == nil || err.Error() != "manager already started" {
					p.t.Errorf("a second time: %v", err)
				}
				if err := p.Add(brokenCache{}); err == nil {
					p.t.Error("takes a cluster after the end")
				}
			})
		})
	}
}

// TestZeroGracefulShutdownTimeout: with a timeout of 0 the manager does not wait for work in flight, and returns no
// error.
func TestZeroGracefulShutdownTimeout(t *testing.T) {
	bothManagers(t, manager.Options{GracefulShutdownTimeout: new(time.Duration(0))}, func(p *process) {
		begun := make(chan struct{})
		p.must(p.Add(manager.RunnableFunc(func(context.Context) error {
			close(begun)
			time.Sleep(time.Minute) // It does not listen.
			return nil
		})))
		p.start()
		<-begun
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > 10*time.Second {
			p.t.Errorf("waited for %v", took)
		}
		later(time.Hour)
	})
}

// TestControllersOfOneName: two controllers with one name run when SkipNameValidation is set.
func TestControllersOfOneName(t *testing.T) {
	bothManagers(t, manager.Options{}, func(p *process) {
		var calls [2]atomic.Int32
		for i := range calls {
			p.controls(func(context.Context, string) (reconcile.Result, error) {
				calls[i].Add(1)
				return reconcile.Result{}, nil
			})
		}
		p.start()
		later(time.Minute)
		if calls[0].Load() != 1 || calls[1].Load() != 1 {
			p.t.Errorf("reconciles: %d and %d", calls[0].Load(), calls[1].Load())
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// TestControllersWithoutAName: controllers whose name was removed run, as with controller-runtime's manager.
func TestControllersWithoutAName(t *testing.T) {
	bothManagers(t, manager.Options{}, func(p *process) {
		var calls atomic.Int32
		c, err := controller.NewUnmanaged("passing",
			controller.Options{
				SkipNameValidation: new(true),
				Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					calls.Add(1)
					return reconcile.Result{}, nil
				}),
			})
		p.must(err)
		reflect.ValueOf(c).Elem().FieldByName("Name").SetString("")
		p.must(
			c.Watch(
				source.Kind(p.GetCache(), &corev1.ConfigMap{},
					&handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{}),
			),
		)
		p.must(p.Add(c))
		p.start()
		later(time.Minute)
		if calls.Load() == 0 {
			p.t.Error("never called")
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// queue is a queue that the caller provides, of either kind.
type (
	counted struct {
		workqueue.TypedRateLimitingInterface[reconcile.Request]
		gets *atomic.Int32
	}
	countedByPriority struct {
		priorityqueue.PriorityQueue[reconcile.Request]
		gets *atomic.Int32
	}
)

func (q counted) Get() (reconcile.Request, bool) {
	q.gets.Add(1)
	return q.TypedRateLimitingInterface.Get()
}

func (q countedByPriority) GetWithPriority() (reconcile.Request, int, bool) {
	q.gets.Add(1)
	return q.PriorityQueue.GetWithPriority()
}

// TestQueuesOfTheCaller: queues that the caller provides are used unchanged.
func TestQueuesOfTheCaller(t *testing.T) {
	for name, wrap := range map[string]func(string, workqueue.TypedRateLimiter[reconcile.Request],
		*atomic.Int32) workqueue.TypedRateLimitingInterface[reconcile.Request]{
		"plain": func(_ string, l workqueue.TypedRateLimiter[reconcile.Request],
			n *atomic.Int32,
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return counted{workqueue.NewTypedRateLimitingQueue(l), n}
		},
		"by priority": func(_ string, l workqueue.TypedRateLimiter[reconcile.Request],
			n *atomic.Int32,
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return countedByPriority{
				priorityqueue.New("", func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = l }), n,
			}
		},
		"ours": func(_ string, l workqueue.TypedRateLimiter[reconcile.Request],
			n *atomic.Int32,
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			n.Add(1)
			return controllerruntime.NewQueue("", l)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothManagers(t, manager.Options{}, func(p *process) {
				var gets atomic.Int32
				p.queue = func(
					name string, l workqueue.TypedRateLimiter[reconcile.Request],
				) workqueue.TypedRateLimitingInterface[reconcile.Request] {
					return wrap(name, l, &gets)
				}
				tries := 0
				p.controls(func(context.Context, string) (reconcile.Result, error) {
					if tries++; tries < 3 {
						return reconcile.Result{}, errors.New("not yet")
					}
					return reconcile.Result{}, nil
				})
				mgr, ours := p.Manager.(*controllerruntime.Manager)
				if !ours {
					p.start()
					later(time.Minute)
				} else if _, err := mgr.RunUntilIdle(p.ctx, own.IdleOptions{}); err != nil && name == "ours" {
					p.t.Error(err)
				}
				if gets.Load() == 0 || tries == 0 {
					p.t.Errorf("asked %d times, %d reconciles", gets.Load(), tries)
				}
			}, namespace("a"), configMap("a", "one", nil))
		})
	}
}

// spyCache is a cache that the caller provides.
type spyCache struct {
	cache.Cache
	synced *atomic.Bool
}

func (s spyCache) WaitForCacheSync(ctx context.Context) bool {
	ok := s.Cache.WaitForCacheSync(ctx)
	s.synced.Store(true)
	return ok
}

// TestCachesOfTheCaller: caches that the caller provides are used unchanged, and start before everything else.
func TestCachesOfTheCaller(t *testing.T) {
	var synced atomic.Bool
	for name, o := range map[string]manager.Options{
		"NewCache": {NewCache: func(c *rest.Config, o cache.Options) (cache.Cache, error) {
			inner, err := cache.New(c, o)
			return spyCache{inner, &synced}, err
		}},
		"Cache.NewInformer": {Cache: cache.Options{NewInformer: controllerruntime.NewInformer}},
		"NewLeanCache":      {NewCache: controllerruntime.NewLeanCache},
	} {
		t.Run(name, func(t *testing.T) {
			bothManagers(t, o, func(p *process) {
				if strings.HasPrefix(p.name, "our parts") {
					return // They have a cache of their own.
				}
				synced.Store(name != "NewCache")
				ran := make(chan bool, 1)
				p.must(p.Add(manager.RunnableFunc(func(context.Context) error {
					ran <- synced.Load()
					return nil
				})))
				p.controls(func(ctx context.Context, name string) (reconcile.Result, error) {
					var m corev1.ConfigMap
					if err := p.GetClient().Get(ctx, client.ObjectKey{Namespace: "a", Name: name}, &m); err != nil {
						return reconcile.Result{}, err
					}
					if m.Data["seen"] == "yes" {
						return reconcile.Result{}, nil
					}
					m.Data["seen"] = "yes"
					return reconcile.Result{}, p.GetClient().Update(ctx, &m)
				})
				if mgr, ok := p.Manager.(*controllerruntime.Manager); ok && name != "NewLeanCache" {
					if _, err := mgr.RunUntilIdle(p.ctx, own.IdleOptions{}); err == nil ||
						!strings.Contains(err.Error(), "NewCache") {
						p.t.Errorf("RunUntilIdle: %v", err)
					}
				}
				p.start()
				if !<-ran {
					p.t.Error("a runnable ran before the cache had synced")
				}
				later(time.Minute)
				var m corev1.ConfigMap
				p.must(p.direct.Get(p.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &m))
				if m.Data["seen"] != "yes" {
					p.t.Error("not reconciled")
				}
				_, ours := p.GetCache().(*controllerruntime.Cache)
				if ours != (p.name == "our manager" && name == "NewLeanCache") && p.name == "our manager" {
					p.t.Errorf("the cache is a %T", p.GetCache())
				}
				p.must(p.GetClient().Get(p.ctx, client.ObjectKey{Namespace: "a", Name: "one"}, &m))
				if name == "NewLeanCache" && p.name == "our manager" && m.ManagedFields != nil {
					p.t.Error("not lean")
				}
			}, namespace("a"), configMap("a", "one", nil))
		})
	}
}

// TestLocks: the manager holds the kind of lock that was asked for.
func TestLocks(t *testing.T) {
	for name, prepare := range map[string]func(o *manager.Options, elsewhere *rest.Config){
		"LeaderElectionLabels": func(o *manager.Options, _ *rest.Config) {
			o.LeaderElectionLabels, o.LeaderElectionResourceLock = map[string]string{"color": "blue"},
				resourcelock.LeasesResourceLock
		},
		"LeaderElectionConfig": func(o *manager.Options, elsewhere *rest.Config) { o.LeaderElectionConfig = elsewhere },
		"LeaderElectionResourceLockInterface": func(o *manager.Options, elsewhere *rest.Config) {
			lock := &resourcelock.LeaseLock{
				Client:     kubernetes.NewForConfigOrDie(elsewhere).CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
			}
			lock.LeaseMeta.Namespace, lock.LeaseMeta.Name = "a", "mine"
			o.LeaderElectionResourceLockInterface, o.LeaderElectionID, o.LeaderElectionNamespace = lock, "", ""
		},
	} {
		for maker, newManager := range managerMakers {
			t.Run(name+"/"+maker, func(t *testing.T) {
				configs := [2]*rest.Config{}
				for i := range configs {
					api := localapi.NewTest(t, namespace("a"))
					configs[i] = api.RESTConfig()
				}
				// With LeaderElectionConfig, controller-runtime adds kinds to the scheme, which is the one of the
				// whole process unless it is given.
				scheme := runtime.NewScheme()
				if err := clientscheme.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				o := manager.Options{
					Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, LeaderElection: true,
					LeaderElectionReleaseOnCancel: true,
					LeaderElectionID:              "op", LeaderElectionNamespace: "a",
				}
				prepare(&o, configs[1])
				m, err := newManager(configs[0], o)
				if err != nil {
					t.Fatal(err)
				}
				stop := inBackground(t, m)
				<-m.Elected()
				leases := map[string]coordinationv1.Lease{}
				for i, config := range configs {
					list, err := kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases("").List(t.Context(),
						metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for _, l := range list.Items {
						leases[[]string{"here/", "there/"}[i]+l.Name] = l
					}
				}
				want := map[string]string{
					"LeaderElectionLabels": "here/op", "LeaderElectionConfig": "there/op",
					"LeaderElectionResourceLockInterface": "there/mine",
				}[name]
				lease, found := leases[want]
				if len(leases) != 1 || !found || lease.Spec.HolderIdentity == nil {
					t.Errorf("leases %v, want %s", leases, want)
				}
				if name == "LeaderElectionLabels" && lease.Labels["color"] != "blue" {
					t.Errorf("labels %v", lease.Labels)
				}
				stop()
			})
		}
	}
}

// inBackground runs a manager outside of a bubble, in which controller-runtime's would leave goroutines.
func inBackground(t *testing.T, m manager.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := m.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// TestBroadcasterOfTheCaller: a broadcaster that the caller provides sends what GetEventRecorderFor records.
func TestBroadcasterOfTheCaller(t *testing.T) {
	for maker, newManager := range managerMakers {
		t.Run(maker, func(t *testing.T) {
			b := record.NewBroadcaster()
			defer b.Shutdown()
			told := make(chan *corev1.Event, 1)
			b.StartEventWatcher(func(e *corev1.Event) { told <- e })
			m, err := newManager(localapi.NewTest(t).RESTConfig(), manager.Options{
				Metrics: server.Options{BindAddress: "0"},
				//lint:ignore SA1019 It may be set.
				EventBroadcaster: b,
			})
			if err != nil {
				t.Fatal(err)
			}
			stop := inBackground(t, m)
			defer stop()
			<-m.Elected()
			//lint:ignore SA1019 Part of the interface.
			r := m.GetEventRecorderFor("me")
			r.AnnotatedEventf(namespace("default"), map[string]string{"color": "blue"}, "Normal", "Seen", "it")
			if e := <-told; e.Reason != "Seen" {
				t.Errorf("got %+v", e)
			}
			var events corev1.EventList
			for len(events.Items) == 0 {
				if err := m.GetAPIReader().List(t.Context(), &events); err != nil {
					t.Fatal(err)
				}
			}
			if e := events.Items[0]; e.Annotations["color"] != "blue" || e.Source.Component != "me" {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// TestSeriesOfEvents: events that repeat under the newer API are counted in a series, with their action, related object
// and annotations. Events that were recorded during the stop are sent.
func TestSeriesOfEvents(t *testing.T) {
	bothManagers(t, manager.Options{}, func(p *process) {
		about := configMap("a", "one", nil)
		r := p.GetEventRecorder("me")
		p.must(p.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			r.Eventf(about, nil, "Normal", "Last", "Stopping", "gone")
			return nil
		})))
		p.start()
		for range 3 {
			r.AnnotatedEventf(about, namespace("a"), map[string]string{"color": "blue"}, "Normal", "Heard", "Hearing",
				"it")
			later(time.Second)
		}
		later(20 * time.Minute) // The count is sent when nothing was added for six.
		p.stop()
		var events eventsv1.EventList
		p.must(p.direct.List(p.t.Context(), &events, client.InNamespace("a")))
		byReason := map[string]eventsv1.Event{}
		for _, e := range events.Items {
			byReason[e.Reason] = e
		}
		e := byReason["Heard"]
		if e.Series == nil || e.Series.Count != 3 || e.Action != "Hearing" || e.Related == nil ||
			e.Annotations["color"] != "blue" {
			p.t.Errorf("the event: %+v", e)
		}
		if _, ok := byReason["Last"]; !ok && p.name == "our manager" {
			p.t.Error("an event recorded during the stop is lost")
		}
	}, namespace("a"), configMap("a", "one", nil))
}

// TestPortsAreOpenedByNew: New returns an error if a port is in use. Profiles are served at any address.
func TestPortsAreOpenedByNew(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, newManager := range managerMakers {
		api := localapi.NewTest(t)
		for what, o := range map[string]manager.Options{
			"health": {HealthProbeBindAddress: taken.Addr().String()},
			"pprof":  {PprofBindAddress: taken.Addr().String()},
		} {
			o.Metrics.BindAddress = "0"
			if _, err := newManager(api.RESTConfig(), o); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("%s: %s at a port that is taken: %v", name, what, err)
			}
		}
		free := address(t)
		_, port, err := net.SplitHostPort(free)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newManager(api.RESTConfig(),
			manager.Options{Metrics: server.Options{BindAddress: "0"}, PprofBindAddress: ":" + port})
		if err != nil {
			t.Fatal(err)
		}
		stop := inBackground(t, m)
		if got := status(t, "http://"+free+"/debug/pprof/cmdline"); got != 200 {
			t.Errorf("%s: profiles: %d", name, got)
		}
		stop()
	}
}
