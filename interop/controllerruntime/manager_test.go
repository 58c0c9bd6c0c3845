package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
	own "github.com/flyball-dev/flyball/manager"
)

// inManager runs test in a bubble with a server and a manager that nothing was added to.
func inManager(t *testing.T, o manager.Options,
	test func(t *testing.T, api *localapi.Server, mgr *controllerruntime.Manager, c client.Client),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api, err := localapi.New(localapi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		o.Metrics = server.Options{BindAddress: "0"}
		o.Controller.SkipNameValidation = new(true)
		mgr, err := controllerruntime.NewManager(api.RESTConfig(), o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, api, mgr, c)
	})
}

// setup is an operator's SetupWithManager: it knows only controller-runtime.
func setup(mgr ctrl.Manager, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).Complete(r)
}

func TestManagerRunsUntilIdle(t *testing.T) {
	inManager(t, manager.Options{},
		func(t *testing.T, _ *localapi.Server, mgr *controllerruntime.Manager, c client.Client) {
			ctx := t.Context()
			for _, name := range []string{"works", "fails", "later"} {
				if err := c.Create(ctx, configMap("default", name, nil)); err != nil {
					t.Fatal(err)
				}
			}
			err := setup(mgr, reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				var m corev1.ConfigMap
				if err := mgr.GetClient().Get(ctx, r.NamespacedName, &m); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				switch r.Name {
				case "fails":
					return reconcile.Result{}, errors.New("never works")
				case "later":
					return reconcile.Result{RequeueAfter: time.Hour}, nil
				case "works":
					s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
					if err := ctrl.SetControllerReference(&m, s, mgr.GetScheme()); err != nil {
						return reconcile.Result{}, err
					}
					if err := client.IgnoreAlreadyExists(mgr.GetClient().Create(ctx, s)); err != nil {
						return reconcile.Result{}, err
					}
					if m.Data["child"] == "" {
						m.Data["child"] = s.Name
						return reconcile.Result{}, mgr.GetClient().Update(ctx, &m)
					}
				}
				return reconcile.Result{}, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			summary, err := mgr.RunUntilIdle(ctx, own.IdleOptions{Retries: 3})
			var failed *own.FailedError
			if !errors.As(err, &failed) || len(failed.Keys) != 1 ||
				!strings.Contains(err.Error(), "default/fails: never works") {
				t.Errorf("error: %v", err)
			}
			if summary.Processed < 6 || summary.Errors != 4 || len(summary.Failed) != 1 || summary.Pending != 0 {
				t.Errorf("summary: %+v", summary)
			}
			if len(summary.DueLater) != 1 || summary.DueLater[0].Key != "default/later" {
				t.Errorf("due later: %+v", summary.DueLater)
			}
			var m corev1.ConfigMap
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "works"}, &m); err != nil ||
				m.Data["child"] != "works" {
				t.Errorf("%v, %v", m.Data, err)
			}
		})
}

// TestManagerStopsInTwoSteps: work in flight at the stop has a live context and a working client, and the manager waits
// for it.
func TestManagerStopsInTwoSteps(t *testing.T) {
	for name, c := range map[string]struct {
		takes   time.Duration
		allowed *time.Duration
	}{
		"in time":       {2 * time.Second, new(10 * time.Second)},
		"stuck":         {time.Hour, new(3 * time.Second)},
		"as by default": {25 * time.Second, nil},
		"for ever":      {100 * time.Hour, new(time.Duration(-1))},
	} {
		t.Run(name, func(t *testing.T) {
			inManager(t, manager.Options{GracefulShutdownTimeout: c.allowed},
				func(t *testing.T, _ *localapi.Server, mgr *controllerruntime.Manager, direct client.Client) {
					ctx, stop := context.WithCancel(t.Context())
					var begun atomic.Bool
					err := setup(mgr,
						reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
							if begun.Swap(true) {
								return reconcile.Result{}, nil
							}
							stop()
							select {
							case <-time.After(c.takes):
							case <-ctx.Done():
								if name == "stuck" {
									time.Sleep(time.Minute) // It does not even listen.
								}
								return reconcile.Result{}, ctx.Err()
							}
							var m corev1.ConfigMap
							if err := mgr.GetClient().Get(ctx, r.NamespacedName, &m); err != nil {
								return reconcile.Result{}, err
							}
							m.Data["finished"] = "yes"
							return reconcile.Result{}, mgr.GetClient().Update(ctx, &m)
						}))
					if err != nil {
						t.Fatal(err)
					}
					for i := range 5 {
						if err := direct.Create(ctx, configMap("default", fmt.Sprint("m", i), nil)); err != nil {
							t.Fatal(err)
						}
					}
					began := time.Now()
					err = mgr.Start(ctx)
					took := time.Since(began)
					if name == "stuck" {
						var undone *own.UndoneError
						if !errors.As(err, &undone) || !errors.Is(err, context.DeadlineExceeded) ||
							!strings.Contains(err.Error(), "default/m") ||
							!strings.Contains(err.Error(), "configmap") || took > 20*time.Second {
							t.Errorf("after %v: %v", took, err)
						}
						time.Sleep(time.Hour) // The reconcile ends, and the bubble with it.
						return
					}
					if err != nil || took < c.takes {
						t.Errorf("after %v: %v", took, err)
					}
					var list corev1.ConfigMapList
					if err := direct.List(t.Context(), &list, client.InNamespace("default")); err != nil {
						t.Fatal(err)
					}
					finished := 0
					for _, m := range list.Items {
						if m.Data["finished"] == "yes" {
							finished++
						}
					}
					if finished != 1 {
						t.Errorf("%d finished, want the one that was in flight", finished)
					}
				})
		})
	}
}

// TestManagerElects: of two managers with one lease, the second works when the first has stopped.
func TestManagerElects(t *testing.T) {
	o := manager.Options{LeaderElection: true, LeaderElectionID: "op", LeaderElectionNamespace: "default"}
	inManager(t, o, func(t *testing.T, api *localapi.Server, first *controllerruntime.Manager, c client.Client) {
		o.Metrics.BindAddress, o.Controller.SkipNameValidation = "0", new(true)
		second, err := controllerruntime.NewManager(api.RESTConfig(), o)
		if err != nil {
			t.Fatal(err)
		}
		var work [2]atomic.Int32
		var stops [2]context.CancelFunc
		var wg sync.WaitGroup
		for i, mgr := range []*controllerruntime.Manager{first, second} {
			if err := setup(mgr, reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				work[i].Add(1)
				return reconcile.Result{}, nil
			})); err != nil {
				t.Fatal(err)
			}
			var ctx context.Context
			ctx, stops[i] = context.WithCancel(t.Context())
			wg.Go(func() {
				if err := mgr.Start(ctx); err != nil {
					t.Error(err)
				}
			})
			<-time.After(time.Minute) // The first has the lease.
		}
		if err := c.Create(t.Context(), configMap("default", "x", nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if work[0].Load() == 0 || work[1].Load() != 0 {
			t.Errorf("work of the leader %d, of the follower %d", work[0].Load(), work[1].Load())
		}
		if closed.Is(second.Elected()) || !closed.Is(first.Elected()) {
			t.Error("Elected is not closed by the leader, or by another")
		}
		if s := second.GetCache().(*controllerruntime.Cache).Stats()["configmaps"]; s.Objects < 1 {
			t.Error("the follower's cache is not warm")
		}
		stops[0]()
		time.Sleep(time.Minute)
		if work[1].Load() == 0 || !closed.Is(second.Elected()) {
			t.Error("the follower has not taken over")
		}
		stops[1]()
		wg.Wait()
	})
}

func TestLeaseWithoutAName(t *testing.T) {
	for name, o := range map[string]manager.Options{
		"LeaderElectionID":        {LeaderElection: true, LeaderElectionNamespace: "default"},
		"LeaderElectionNamespace": {LeaderElection: true, LeaderElectionID: "id"},
	} {
		for maker, newManager := range managerMakers {
			if m, err := newManager(&rest.Config{Host: "http://127.0.0.1:1"}, o); m != nil || err == nil ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s: %s: %v, %v", maker, name, m, err)
			}
		}
	}
}

// TestLeaseTimes: NewManager rejects times that do not fit together; controller-runtime's own rejects them at the
// start.
func TestLeaseTimes(t *testing.T) {
	o := manager.Options{
		LeaderElection: true, LeaderElectionID: "op", LeaderElectionNamespace: "a", RenewDeadline: new(time.Hour),
		Metrics: server.Options{BindAddress: "0"},
	}
	for maker, newManager := range managerMakers {
		m, err := newManager(localapi.NewTest(t).RESTConfig(), o)
		if err == nil && maker != "our manager" {
			err = m.Start(t.Context())
		}
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "renew") {
			t.Errorf("%s: %v", maker, err)
		}
	}
}
