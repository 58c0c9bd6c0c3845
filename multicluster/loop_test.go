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

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// The local manager shows a fleet's controllers like any others, and RunUntilIdle waits for all clusters.
func TestRunUntilIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := []*site{newSite(t), newSite(t), newSite(t)}
		deadSite := newSite(t)
		deadSite.setVerdict(dropConnection)
		clusters := announced{{Name: "dead", Config: deadSite.RESTConfig()}}
		for i, s := range sites {
			s.create(t, "x", "y")
			clusters = append(clusters, multicluster.Announcement{Name: fmt.Sprint("c-", i), Config: s.RESTConfig()})
		}
		localSite := newSite(t)
		local, err := manager.New(localSite.RESTConfig(), manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fleet, err := multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{clusters}})
		if err != nil {
			t.Fatal(err)
		}
		// Each write causes an event, and the event the next write: "x" becomes "x-1", then "x-1-1", and so on.
		r := reconcile.Func[multicluster.Request](func(ctx context.Context,
			r multicluster.Request,
		) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil || len(r.Name) > 10 {
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, configMap(r.Name+"-1")))
		})
		if err := multicluster.ControllerManagedBy(fleet).For(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
		summary, err := local.RunUntilIdle(t.Context(), manager.IdleOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if summary.Processed < 36 || len(summary.Controllers) != 1 || summary.Controllers[0].Name != "configmap" {
			t.Errorf("%+v", summary)
		}
		for i, s := range sites {
			if n := len(s.writes()); n != 12 {
				t.Errorf("cluster %d has %d objects, want 12", i, n)
			}
		}
	})
}

// Requests in flight and failing requests are shown with their cluster.
func TestWorkNamesTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		blocked := make(chan struct{})
		r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			if r.Name == "x" {
				<-blocked
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, reconcile.Terminal(errors.New("no"))
		}}
		c, err := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithOptions(
			reconcile.Options[multicluster.Request]{HungAfter: time.Minute},
		).Build(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.local.Add(c); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		s := newSite(t)
		s.create(t, "x", "y")
		w.join(t, "eu", s)
		time.Sleep(2 * time.Minute)
		if got := c.InFlight(); len(got) != 1 || !strings.HasPrefix(got[0], "cluster://eu/default/x ") {
			t.Errorf("in flight: %q", got)
		}
		if got := c.Work().Failing; len(got) != 1 || got[0].Key != "cluster://eu/default/y" ||
			got[0].Causes[0].Source != "eu configmaps" {
			t.Errorf("failing: %+v", got)
		}
		if s := c.Stats(); s.Syncs != 1 || s.Errors != 1 || s.Events != 2 || s.Hung != 1 {
			t.Errorf("%+v", s)
		}
		if err := w.local.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if note := c.Note(); note != "cluster://eu/default/x hangs for 2m0s" {
			t.Errorf("note: %q", note)
		}
		close(blocked)
		synctest.Wait()
		if note := c.Note(); note != "" {
			t.Errorf("note: %q", note)
		}
	})
}

// Requests that were queued when their cluster departed are reported if the builder asks for it.
func TestReportGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{ClusterWorkers: 1, ReleaseAfter: -1}, manager.Options{})
		blocked := make(chan struct{})
		var reported []string
		r := &recorder{}
		r.then = func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			if _, ok := multicluster.ClusterFromContext(ctx); ok {
				<-blocked
				return reconcile.Result{}, nil
			}
			_, err := w.GetCluster(ctx, r.Cluster)
			if !errors.Is(err, multicluster.ErrClusterGone) {
				t.Errorf("%v: %v", r, err)
			}
			reported = append(reported, r.String()+" because of "+reconcile.Causes(ctx)[0].Source)
			return reconcile.Result{}, nil
		}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithOptions(
			reconcile.Options[multicluster.Request]{Workers: 1},
		)
		if err := b.ReportGone(true).Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		s := newSite(t)
		s.create(t, "x", "y", "z")
		w.join(t, "eu", s)
		synctest.Wait()
		w.fleet.Leave("eu")
		synctest.Wait()
		w.join(t, "eu", newSite(t)) // a successor does not count
		close(blocked)
		synctest.Wait()
		if want := []string{
			"cluster://eu/default/y because of eu configmaps",
			"cluster://eu/default/z because of eu configmaps",
		}; !slices.Equal(reported, want) {
			t.Errorf("reported %q", reported)
		}
	})
}

// A further cluster that a reconcile uses does not depart before the reconcile returns or is cancelled.
func TestOtherClustersOfAReconcileStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		var got []error
		r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			other, err := w.GetCluster(ctx, "other")
			if err != nil {
				return reconcile.Result{}, err
			}
			time.Sleep(5 * time.Second)
			retry, err := w.GetCluster(ctx, "other")
			if retry != other {
				t.Errorf("another one: %v, %v", retry, err)
			}
			got = append(got, other.Create(ctx, configMap("copy")))
			return reconcile.Result{}, nil
		}}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithClusterFilter(
			func(c multicluster.ClusterInfo) bool { return c.Name == "eu" },
		)
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		eu, other := newSite(t), newSite(t)
		w.join(t, "eu", eu)
		w.join(t, "other", other)
		synctest.Wait()
		eu.create(t, "x")
		synctest.Wait()
		w.fleet.Leave("other")
		w.wantStates(t, "in use", "eu Live, other Draining")
		time.Sleep(5 * time.Second)
		w.wantStates(t, "used", "eu Live")
		if len(got) != 1 || got[0] != nil {
			t.Errorf("write: %v", got)
		}
	})
}

// A declaration in the local cluster is applied to clusters that join later, and its status reports those that left.
func TestWatchesClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r := &recorder{}
		var failures atomic.Int32
		onLive := func(ctx context.Context, c *multicluster.Cluster) (requests []multicluster.Request, err error) {
			if failures.Add(1) == 1 {
				return nil, errors.New("the local cluster is away")
			}
			var all corev1.ConfigMapList
			err = w.local.GetClient().List(ctx, &all)
			for _, cm := range all.Items {
				requests = append(requests,
					multicluster.RequestFor(c.Name(), cm.Namespace, cm.Name+c.Labels()["suffix"]))
			}
			return requests, err
		}
		onGone := func(_ context.Context, c multicluster.ClusterInfo) []multicluster.Request {
			return []multicluster.Request{multicluster.RequestFor(multicluster.LocalCluster, "left", c.Name)}
		}
		if err := multicluster.ControllerManagedBy(w.Manager).Named("sync").WatchesClusters(onLive, onGone).Complete(
			r,
		); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		w.localSite.create(t, "x", "y")
		s := newSite(t)
		w.join(t, "a", s)
		r.want(t, "it cannot be found out")
		time.Sleep(5 * time.Second)
		r.want(t, "live", "cluster://a/default/x", "cluster://a/default/y")
		w.joinAs(t, "a", "1", s, map[string]string{"suffix": "-labelled"})
		r.want(t, "labels", "cluster://a/default/x-labelled", "cluster://a/default/y-labelled")
		w.fleet.Leave("a")
		r.want(t, "left", "left/a")
		w.join(t, "b", s)
		r.want(t, "another one", "cluster://b/default/x", "cluster://b/default/y")
		// As at the end of the process, but the controller continues.
		if err := w.local.Remove(t.Context(), "fleet"); err != nil {
			t.Fatal(err)
		}
		w.wantStates(t, "the end of the fleet", "b Gone")
		r.want(t, "the end of the fleet")
		w.end(t)
		r.want(t, "the end of the process")
	})
}
