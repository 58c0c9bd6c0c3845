package multicluster

import (
	"context"
	"testing"

	"github.com/flyball-dev/flyball/reconcile"
)

// A build function may get a reconciler of another PerCluster for the same cluster. A build function that panics is
// called again.
func TestPerClusterBuildsWithoutALock(t *testing.T) {
	c := &Cluster{}
	nothing := reconcile.Func[reconcile.Request](func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
	calls := 0
	inner := PerCluster(func(*Cluster) (reconcile.Reconciler[reconcile.Request], error) {
		if calls++; calls == 1 {
			panic("not yet")
		}
		return nothing, nil
	}).(*perCluster)
	outer := PerCluster(func(c *Cluster) (reconcile.Reconciler[reconcile.Request], error) {
		return c.reconcilers.get(context.Background(), inner, c)
	}).(*perCluster)
	ask := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		if one, err := c.reconcilers.get(t.Context(), outer, c); err != nil || one == nil {
			t.Errorf("got %v, %v", one, err)
		}
		return false
	}
	if !ask() || ask() || ask() || calls != 2 {
		t.Errorf("built %d times, want a panic and then once", calls)
	}
}
