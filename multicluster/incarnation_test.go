package multicluster_test

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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// Source: multicluster-runtime v0.24.1 pkg/controller/controller.go: after a replacement under the same name, old
// requests never run against the new cluster.
func TestRequestsNeverRunAgainstASuccessor(t *testing.T) {
	for name, change := range map[string]func(a *multicluster.Announcement){
		"identity": func(a *multicluster.Announcement) { a.Identity = "2" },
		"endpoint": func(a *multicluster.Announcement) { a.Config.Host += "/elsewhere/.." },
		"token":    func(a *multicluster.Announcement) { a.Config.BearerToken = "new" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, multicluster.Options{ClusterWorkers: 1, ReleaseAfter: -1}, manager.Options{})
				var current atomic.Pointer[multicluster.Cluster]
				r := &recorder{}
				r.then = func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
					c, err := clusterOf(ctx)
					if err != nil {
						return reconcile.Result{}, err
					}
					current.Store(c)
					if r.Name == "later" {
						return reconcile.Result{RequeueAfter: time.Hour}, nil
					}
					time.Sleep(5 * time.Second)
					if r.Name == "fails" {
						return reconcile.Result{}, errors.New("not today")
					}
					return reconcile.Result{}, nil
				}
				w.complete(t, r)
				w.start(t)
				old, next := newSite(t), newSite(t)
				old.create(t, "fails", "later", "queued-1", "queued-2")
				next.create(t, "new")
				w.join(t, "eu", old)
				// "fails" waits for its retry, "later" for its hour; one is in flight and one queued
				time.Sleep(6 * time.Second)
				first := current.Load()
				a := multicluster.Announcement{Name: "eu", Identity: "1", Config: next.RESTConfig()}
				change(&a)
				r.take()
				if err := w.fleet.Join(a); err != nil {
					t.Fatal(err)
				}
				w.wantStates(t, "while the old one drains", "eu Draining")
				if n := len(next.log.Entries(nil)); n != 1 {
					t.Errorf("the new one was asked %d times before the old one was gone", n-1)
				}
				time.Sleep(2 * time.Hour)
				r.want(t, "of the new cluster", "cluster://eu/default/new")
				if c := current.Load(); c == first || first.State() != multicluster.Gone ||
					!errors.Is(first.Err(), multicluster.ErrClusterGone) {
					t.Errorf("the old one is %v: %v", first.State(), first.Err())
				}
				if err := first.APIReader().List(t.Context(), &corev1.ConfigMapList{}); !errors.Is(err,
					multicluster.ErrClusterGone) {
					t.Errorf("a read by the old one: %v", err)
				}
			})
		})
	}
}

// Announcing a known cluster again changes nothing.
func TestJoinIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, s := startRecording(t)
		for i := range 10 {
			w.joinAs(t, "eu", "1", s, map[string]string{"round": fmt.Sprint(i)})
			synctest.Wait()
		}
		r.want(t, "ten announcements", "cluster://eu/default/x")
		if n := len(s.log.Entries(func(e auditEntry) bool { return e.Verb == "list" || e.Verb == "watch" })); n != 2 {
			t.Errorf("%d lists and watches", n)
		}
		c, err := w.GetCluster(t.Context(), "eu")
		if err != nil || c.Labels()["round"] != "9" {
			t.Errorf("labels %v, %v", c.Labels(), err)
		}
	})
}

// A reconcile that does not return although it was cancelled does not keep the name, and its client no longer works.
func TestStuckReconcileDoesNotKeepTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{DrainTimeout: time.Second}, manager.Options{})
		release := make(chan struct{})
		var late error
		r := &recorder{}
		r.then = func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil || c.Info().Identity != "1" {
				return reconcile.Result{}, err
			}
			<-release
			late = c.Create(context.WithoutCancel(ctx), configMap("late"))
			return reconcile.Result{}, nil
		}
		w.complete(t, r)
		w.start(t)
		old, next := newSite(t), newSite(t)
		old.create(t, "x")
		next.create(t, "y")
		w.joinAs(t, "eu", "1", old, nil)
		synctest.Wait()
		w.joinAs(t, "eu", "2", next, nil)
		time.Sleep(4 * time.Second)
		r.want(t, "the next one", "cluster://eu/default/x", "cluster://eu/default/y")
		if lines := w.logs.with("with reconciles still in flight", "eu"); len(lines) != 1 {
			t.Errorf("lines %q", lines)
		}
		close(release)
		synctest.Wait()
		if !errors.Is(late, multicluster.ErrClusterGone) {
			t.Errorf("the late write: %v", late)
		}
		if n := len(old.writes()) + len(next.writes()); n != 2 {
			t.Errorf("%d writes, want the test's own two", n)
		}
	})
}

// A child that is created and deleted while the watch is interrupted wakes its owner, in its own cluster only.
func TestVanishedChildWakesItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		unseen, other := newSite(t), newSite(t)
		blind := func(_ context.Context, r *gate.Request) gate.Verdict {
			if r.Resource == "secrets" && r.Verb != "create" {
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		}
		r := &recorder{}
		var mu sync.Mutex // guards the variables below
		blinded, why := false, []string{}
		r.then = func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil {
				return reconcile.Result{}, err
			}
			var children corev1.SecretList
			if err := c.List(ctx, &children); err != nil || len(children.Items) > 0 {
				return reconcile.Result{}, err
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Cluster == "eu" && !blinded {
				blinded = true
				unseen.setVerdict(blind)
			}
			for _, cause := range reconcile.Causes(ctx) {
				why = append(why, r.Cluster+" "+cause.Source+" "+cause.Event)
			}
			child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "child-"}}
			return reconcile.Result{}, c.Create(ctx, child)
		}
		w.complete(t, r)
		w.start(t)
		w.join(t, "us", other)
		w.join(t, "eu", unseen)
		other.create(t, "x")
		unseen.create(t, "x")
		synctest.Wait()
		children := unseen.writes()
		if len(children) != 2 {
			t.Fatalf("writes: %v", children)
		}
		unseen.setVerdict(nil)
		child := strings.TrimPrefix(children[1], "create default/")
		if err := unseen.client(t).CoreV1().Secrets("default").Delete(t.Context(), child,
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := unseen.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		slices.Sort(why)
		if want := []string{"eu eu configmaps Add", "eu secrets Missed", "us us configmaps Add"}; !slices.Equal(why,
			want) {
			t.Errorf("created because of %q, want %q", why, want)
		}
	})
}
