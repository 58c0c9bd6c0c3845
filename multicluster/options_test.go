package multicluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
)

// Followers join clusters, too, unless OnlyLeader is set, and have warm caches when they lead. Either way, reconciles
// begin with the lease.
func TestWhoLeadsAndWhoJoins(t *testing.T) {
	for _, onlyLeader := range []bool{false, true} {
		t.Run(fmt.Sprintf("only the leader: %v", onlyLeader), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, multicluster.Options{OnlyLeader: onlyLeader},
					manager.Options{
						LeaderElection: manager.LeaderElection{Enabled: true, Name: "flyball-manager", WarmUp: -1},
					})
				other, seconds, now := "other", int32(15), metav1.NowMicro()
				if err := w.localSite.Seed(t.Context(), &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "flyball-manager"},
					Spec: coordinationv1.LeaseSpec{
						HolderIdentity: &other, LeaseDurationSeconds: &seconds,
						RenewTime: &now,
					},
				}); err != nil {
					t.Fatal(err)
				}
				r := &recorder{}
				w.complete(t, r)
				began := time.Now()
				w.start(t) // comes back when the provider runs
				if waited := time.Since(began) >= 15*time.Second; waited != onlyLeader {
					t.Errorf("the provider ran after %v", time.Since(began))
				}
				s := newSite(t)
				s.create(t, "x")
				w.join(t, "eu", s)
				w.wantStates(t, "joined", "eu Live")
				if !onlyLeader {
					if lists := len(s.log.Entries(func(e auditEntry) bool { return e.Verb == "list" })); lists != 1 {
						t.Errorf("%d lists by a follower", lists)
					}
					r.want(t, "as a follower")
				}
				time.Sleep(time.Until(began.Add(30 * time.Second)))
				r.want(t, "as the leader", "cluster://eu/default/x")
			})
		})
	}
}

// Options.Caches restricts the cache of a kind in all clusters, for controllers and readers alike.
func TestCachesAreRestricted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{Caches: []client.CacheOf{
			{Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{LabelSelector: "meant=yes"}},
		}}, manager.Options{})
		r := &recorder{}
		w.complete(t, r)
		w.start(t)
		s := newSite(t)
		meant := configMap("meant")
		meant.Labels = map[string]string{"meant": "yes"}
		if err := s.Seed(t.Context(), meant, configMap("other")); err != nil {
			t.Fatal(err)
		}
		w.join(t, "eu", s)
		r.want(t, "labelled objects", "cluster://eu/default/meant")
		c, err := w.GetCluster(t.Context(), "eu")
		if err != nil {
			t.Fatal(err)
		}
		var list corev1.ConfigMapList
		if err := c.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
			t.Errorf("the cache has %d, %v", len(list.Items), err)
		}
		if lists := len(s.log.Entries(func(e auditEntry) bool { return e.Verb == "list" })); lists != 1 {
			t.Errorf("%d lists: reader and controller do not share a cache", lists)
		}
	})
}
