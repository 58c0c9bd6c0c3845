package multicluster_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// All clients of a cluster share one rate limit, which other clusters do not use. A limit in the cluster's config takes
// precedence.
func TestEachClusterHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{QPS: 1, Burst: 4, ReleaseAfter: -1}, manager.Options{})
		var mu sync.Mutex
		took := map[string]time.Duration{}
		w.complete(t,
			reconcile.Func[multicluster.Request](func(ctx context.Context,
				r multicluster.Request,
			) (reconcile.Result, error) {
				c, err := clusterOf(ctx)
				if err != nil {
					return reconcile.Result{}, err
				}
				clients, err := kubernetes.NewForConfig(c.Config())
				if err != nil {
					return reconcile.Result{}, err
				}
				began := time.Now()
				for range 10 {
					if err := c.APIReader().Get(ctx, r.NamespacedName, &corev1.ConfigMap{}); err != nil {
						return reconcile.Result{}, err
					}
					if _, err := clients.CoreV1().ConfigMaps(r.Namespace).Get(ctx, r.Name,
						metav1.GetOptions{}); err != nil {
						return reconcile.Result{}, err
					}
				}
				mu.Lock()
				defer mu.Unlock()
				took[r.Cluster] = time.Since(began)
				return reconcile.Result{}, nil
			}))
		w.start(t)
		for _, name := range []string{"a", "b", "unlimited", "generous"} {
			s := newSite(t)
			s.create(t, "x")
			config := s.RESTConfig()
			config.QPS = map[string]float32{"unlimited": -1, "generous": 10}[name]
			if err := w.fleet.Join(multicluster.Announcement{Name: name, Config: config}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for name, want := range map[string]time.Duration{
			"a": 20 * time.Second, "b": 20 * time.Second, "unlimited": 0,
			"generous": 2 * time.Second,
		} {
			if got, ok := took[name]; !ok || got > want || got < want-4*time.Second {
				t.Errorf("20 requests to %s took %v (%v), want about %v", name, got, ok, want)
			}
		}
	})
}
