package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// Objects of the same name in several clusters make requests that differ in the cluster's name, and the writes for each
// reach its cluster.
func TestWritesLandInTheRightCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil {
				return reconcile.Result{}, err
			}
			var cm corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &cm); err != nil || cm.Data != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			cm.Data = map[string]string{"cluster": r.Cluster}
			return reconcile.Result{}, c.Update(ctx, &cm)
		}}
		w.complete(t, r)
		w.start(t)
		sites := map[string]*site{}
		for _, name := range []string{"a", "b", "c"} {
			sites[name] = newSite(t)
			w.join(t, name, sites[name])
		}
		w.wantStates(t, "joined", "a Live, b Live, c Live")
		for _, s := range sites {
			s.create(t, "same")
		}
		got := slices.Compact(r.take())
		if want := []string{
			"cluster://a/default/same", "cluster://b/default/same",
			"cluster://c/default/same",
		}; !slices.Equal(got, want) {
			t.Errorf("reconciled %q", got)
		}
		for name, s := range sites {
			cm, err := s.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "same", metav1.GetOptions{})
			if err != nil || cm.Data["cluster"] != name {
				t.Errorf("cluster %s: %v, %v", name, cm.Data, err)
			}
		}
		if n := len(w.localSite.writes()); n != 0 {
			t.Errorf("%d writes in the local cluster", n)
		}
	})
}

// When a cluster leaves, its informers end, and requests queued for it are dropped without an error.
func TestLeavingDropsQueuedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{ClusterWorkers: 1, ReleaseAfter: -1}, manager.Options{})
		blocked := make(chan struct{})
		r := &recorder{then: func(context.Context, multicluster.Request) (reconcile.Result, error) {
			<-blocked
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		}}
		w.complete(t, r)
		w.start(t)
		s := newSite(t)
		s.create(t, "x", "y", "z")
		w.join(t, "a", s)
		r.want(t, "one at a time", "cluster://a/default/x")
		w.fleet.Leave("a")
		w.wantStates(t, "left, with one in flight", "a Draining")
		close(blocked)
		w.wantStates(t, "left", "")
		time.Sleep(time.Hour)
		r.want(t, "nothing comes later")
		if n := w.Stats().Dropped; n != 2 {
			t.Errorf("%d requests were dropped, want two", n)
		}
		if lines := w.logs.with("Reconcile failed"); len(lines) > 0 {
			t.Errorf("errors: %q", lines)
		}
		before := len(s.log.Entries(nil))
		s.create(t, "later")
		time.Sleep(time.Hour)
		if after := len(s.log.Entries(nil)); after != before+1 {
			t.Errorf("%d requests after it left", after-before-1)
		}
	})
}

// Source: multicluster-runtime v0.24.1 pkg/controller/controller.go: an unresponsive cluster blocks every later one.
func TestDeadClusterDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r := &recorder{}
		w.complete(t, r)
		w.start(t)
		began := time.Now()
		silent, refusing := newSite(t), newSite(t)
		silent.setVerdict(neverAnswer)
		refusing.setVerdict(dropConnection)
		w.join(t, "dead", silent)
		w.join(t, "refusing", refusing)
		for i := range 10 {
			s := newSite(t)
			s.create(t, "x")
			w.join(t, fmt.Sprint("live-", i), s)
		}
		if got := len(r.take()); got != 10 {
			t.Errorf("%d clusters were reconciled at once, want 10", got)
		}
		if _, err := w.GetCluster(t.Context(), "live-3"); err != nil {
			t.Error(err)
		}
		_, err := w.GetCluster(t.Context(), "dead")
		if !errors.Is(err, multicluster.ErrClusterNotLive) || !strings.Contains(err.Error(), "Joining") {
			t.Errorf("the dead one: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Hour)
		if lines := w.logs.with("Cannot reach cluster"); len(lines) != 2 {
			t.Errorf("%d lines about two dead clusters in an hour: %q", len(lines), lines)
		}
		if err := w.local.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if note := w.Note(); !strings.HasPrefix(note, "10 of 12 clusters are live; dead: Joining, ") {
			t.Errorf("note: %s", note)
		}
		silent.setVerdict(nil)
		silent.create(t, "x")
		time.Sleep(3 * time.Minute)
		r.want(t, "it is back", "cluster://dead/default/x")
	})
}
