package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// Live clusters that stop answering while reconciles wait for them do not occupy the workers of the others.
func TestHungClustersReleaseWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{ClusterWorkers: 2}, manager.Options{})
		r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err == nil {
				err = c.APIReader().Get(ctx, r.NamespacedName, &corev1.ConfigMap{})
			}
			return reconcile.Result{}, err
		}}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithOptions(
			reconcile.Options[multicluster.Request]{Workers: 4},
		)
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		var hung []*site
		for i := range 5 {
			s := newSite(t)
			s.create(t, "x", "y", "z")
			s.setVerdict(func(ctx context.Context, r *gate.Request) gate.Verdict {
				if r.Verb == "get" && r.Resource != "" {
					return neverAnswer(ctx, r)
				}
				return gate.Verdict{}
			})
			hung = append(hung, s)
			w.join(t, fmt.Sprint("hung-", i), s)
		}
		synctest.Wait()
		time.Sleep(4 * time.Second) // The workers of two clusters are replaced each second.
		r.take()
		s := newSite(t)
		w.join(t, "well", s)
		for range 100 {
			synctest.Wait()
			began := time.Now()
			s.create(t, fmt.Sprint("object-", began.UnixNano()))
			r.want(t, "the healthy cluster", fmt.Sprintf("cluster://well/default/object-%d", began.UnixNano()))
			time.Sleep(time.Second)
		}
		for _, c := range w.Clusters() {
			if strings.HasPrefix(c.Name, "hung") && c.InFlight != 2 {
				t.Errorf("%s has %d workers, want the two that it may keep", c.Name, c.InFlight)
			}
		}
		for _, s := range hung {
			s.setVerdict(nil)
		}
	})
}

// Source: multicluster-runtime v0.24.1 pkg/controller/controller.go: a cluster that joins and leaves before the
// controller starts ends the process.
func TestJoinAndLeaveBeforeControllersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r := &recorder{}
		c, err := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).Build(r)
		if err != nil {
			t.Fatal(err)
		}
		w.start(t)
		gone, stays := newSite(t), newSite(t)
		gone.create(t, "x")
		stays.create(t, "x")
		w.join(t, "gone", gone)
		w.join(t, "stays", stays)
		w.wantStates(t, "joined", "gone Live, stays Live")
		if n := len(stays.log.Entries(nil)); n < 3 {
			t.Errorf("%d requests: the caches of a controller that waits are not warm", n)
		}
		w.fleet.Leave("gone")
		w.wantStates(t, "left", "stays Live")
		if err := w.local.Add(c); err != nil {
			t.Fatal(err)
		}
		r.want(t, "the controller starts", "cluster://stays/default/x")
	})
}

// Source: multicluster-runtime v0.24.1, its sharded coordinator: x leaves, and the watches of y, which were started
// with its context, end, too.
func TestLeavingEndsNoOtherWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r := &recorder{}
		w.complete(t, r)
		w.start(t)
		sites := map[string]*site{}
		for _, name := range []string{"x", "y", "z"} {
			sites[name] = newSite(t)
			w.join(t, name, sites[name])
		}
		synctest.Wait()
		for _, leaves := range []string{"x", "z"} {
			w.fleet.Leave(leaves)
			synctest.Wait()
			name := "after-" + leaves
			sites["y"].create(t, name)
			r.want(t, leaves+" left", "cluster://y/default/"+name)
		}
	})
}

// Source: multicluster-runtime v0.24.1, its sharded coordinator: reconciles finish after the cluster was handed over.
// Here they finish before it is gone, with a working client, or are cancelled. Queued requests do not run.
func TestDrainLetsWorkEnd(t *testing.T) {
	for _, c := range []struct {
		name    string
		takes   time.Duration
		timeout time.Duration
		want    time.Duration // until it is gone
		written bool
	}{
		{"in time", 5 * time.Second, 0, 5 * time.Second, true},
		{"cut short", time.Hour, 30 * time.Second, 30 * time.Second, false},
		{"at once", time.Hour, -1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, multicluster.Options{DrainTimeout: c.timeout}, manager.Options{})
				var causes, finished atomic.Int32
				r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
					cluster, err := w.GetCluster(ctx, r.Cluster)
					if err != nil {
						return reconcile.Result{}, err
					}
					select {
					case <-time.After(c.takes):
					case <-ctx.Done():
						if errors.Is(context.Cause(ctx), multicluster.ErrClusterGone) {
							causes.Add(1)
						}
						return reconcile.Result{}, ctx.Err()
					}
					if cluster.State() != multicluster.Draining {
						t.Errorf("state %v", cluster.State())
					}
					if retry, err := w.GetCluster(ctx, r.Cluster); retry != cluster {
						t.Errorf("the cluster of the request is %v, %v", retry, err)
					}
					finished.Add(1)
					return reconcile.Result{}, cluster.Create(ctx, configMap(r.Name+"-done"))
				}}
				w.complete(t, r)
				w.start(t)
				s := newSite(t)
				s.create(t, "a", "b", "c", "d", "e", "f") // four of them at once, as half of the workers
				w.join(t, "eu", s)
				synctest.Wait()
				w.fleet.Leave("eu")
				began := time.Now()
				for synctest.Wait(); w.states() != ""; synctest.Wait() {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took < c.want || took > c.want+time.Second {
					t.Errorf("gone after %v, want %v", took, c.want)
				}
				done, cut := int32(4), int32(0)
				if !c.written {
					done, cut = cut, done
				}
				if finished.Load() != done || causes.Load() != cut {
					t.Errorf("%d finished and %d were cancelled, want %d and %d", finished.Load(), causes.Load(), done,
						cut)
				}
				if writes := len(s.writes()) - 6; writes != int(done) {
					t.Errorf("%d writes", writes)
				}
				if n := len(r.take()); n != 4 {
					t.Errorf("%d reconciles began, want 4", n)
				}
			})
		})
	}
}

// Source: multicluster-runtime v0.24.1 providers/kubeconfig/provider.go: a cluster's life depends on the context of the
// reconcile that found it. Here announcements have no context.
func TestClustersOutliveReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{EngageLocal: true}, manager.Options{})
		spoke := newSite(t)
		r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			if r.Cluster == multicluster.LocalCluster {
				w.join(t, r.Name, spoke)
			}
			return reconcile.Result{}, nil
		}}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{})
		if err := b.WithOptions(reconcile.Options[multicluster.Request]{Timeout: time.Second}).Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		w.localSite.create(t, "spoke")
		time.Sleep(time.Hour)
		r.want(t, "the local cluster", "default/spoke")
		spoke.create(t, "x")
		r.want(t, "an hour later", "cluster://spoke/default/x")
	})
}

// Source: multicluster-runtime v0.24.1 pkg/source/kind.go: priorities, and the mark of initial objects, are lost. Here
// handlers and predicates get the mark, initial objects come after changes, and requeues keep their priority.
func TestInitialObjectsComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{ReleaseAfter: -1}, manager.Options{})
		r := &recorder{then: func(context.Context, multicluster.Request) (reconcile.Result, error) {
			time.Sleep(10 * time.Millisecond)
			return reconcile.Result{}, nil
		}}
		var initial, later atomic.Int32
		h := handler.EnqueueObject[informer.Object]()
		add := h.OnAdd
		h.OnAdd = func(ctx context.Context, obj informer.Object, first bool, q reconcile.Enqueuer[reconcile.Request]) {
			if first {
				initial.Add(1)
			} else {
				later.Add(1)
			}
			add(ctx, obj, first, q)
		}
		b := multicluster.ControllerManagedBy(w.Manager).Named("maps").Watches(&corev1.ConfigMap{}, h)
		if err := b.WithOptions(reconcile.Options[multicluster.Request]{Workers: 1}).Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		s := newSite(t)
		for i := range 100 {
			s.create(t, fmt.Sprintf("there-%02d", i))
		}
		w.join(t, "eu", s)
		time.Sleep(50 * time.Millisecond)
		s.create(t, "new")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		r.mu.Lock()
		at := slices.Index(r.list, "cluster://eu/default/new")
		r.mu.Unlock()
		if at < 0 || at > 10 {
			t.Errorf("the new object was reconciled as number %d of 101", at)
		}
		if initial.Load() != 100 || later.Load() != 1 {
			t.Errorf("%d initial objects and %d others, want 100 and 1", initial.Load(), later.Load())
		}
	})
}

// Source: scylla-operator#3659: a broken kubeconfig fails late; milo#638: clusters that are not ready are kept alive.
func TestBrokenAndUnreadyClustersAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, s := startRecording(t)
		config := s.RESTConfig()
		config.Host, config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = "https://nowhere",
			[]byte("no certificate"), []byte("no key")
		config.Transport = nil
		announce := func(a multicluster.Announcement) {
			t.Helper()
			if err := w.fleet.Join(a); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		announce(multicluster.Announcement{Name: "broken", Config: config})
		if status, err := w.Status("broken"); err != nil || status.State != multicluster.Joining ||
			!strings.Contains(status.Reason, "invalid config: ") {
			t.Errorf("%+v, %v", status, err)
		}
		announce(multicluster.Announcement{Name: "broken", Config: s.RESTConfig()})
		r.want(t, "repaired", "cluster://broken/default/x")

		announce(multicluster.Announcement{Name: "eu", NotReady: "being provisioned"})
		if status, err := w.Status("eu"); err != nil || status.State != multicluster.Waiting ||
			status.Reason != "not ready: being provisioned" {
			t.Errorf("%+v, %v", status, err)
		}
		ready := multicluster.Announcement{Name: "eu", Config: s.RESTConfig()}
		announce(ready)
		r.want(t, "ready", "cluster://eu/default/x")
		unready := ready
		unready.NotReady = "upgrading"
		announce(unready)
		w.wantStates(t, "not ready any more", "broken Live, eu Waiting")
		s.create(t, "y")
		r.want(t, "while it is not ready", "cluster://broken/default/y")
		announce(ready)
		r.want(t, "ready again", "cluster://eu/default/x", "cluster://eu/default/y")
	})
}

// Indexes can be declared before and after clusters join.
func TestIndexesOfPresentAndFutureClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{EngageLocal: true}, manager.Options{})
		r := &recorder{}
		w.complete(t, r)
		w.start(t)
		w.join(t, "before", newSite(t))
		synctest.Wait()
		byName := func(o informer.Object) []string { return []string{o.GetName()} }
		if err := w.IndexField(t.Context(), &corev1.ConfigMap{}, "byName", byName); err != nil {
			t.Fatal(err)
		}
		w.join(t, "after", newSite(t))
		synctest.Wait()
		if err := w.IndexField(t.Context(), &corev1.ConfigMap{}, "byName", byName); !errors.Is(err,
			informer.ErrIndexExists) {
			t.Errorf("declared twice: %v", err)
		}
		for _, name := range []string{"before", "after", multicluster.LocalCluster} {
			c, err := w.GetCluster(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range []string{"a", "b"} {
				if err := c.Create(t.Context(), configMap(object)); err != nil {
					t.Fatal(err)
				}
			}
			var list corev1.ConfigMapList
			if err := c.List(t.Context(), &list, matching{"byName": "b"}); err != nil || len(list.Items) != 1 ||
				list.Items[0].Name != "b" {
				t.Errorf("cluster %q: %d found, %v", name, len(list.Items), err)
			}
		}
	})
}
