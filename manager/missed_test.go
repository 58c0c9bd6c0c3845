package manager_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// While the watch is interrupted, a reconcile creates a child, and the child is deleted. Another controller in the same
// process then replaces the first one. It reads the child, because the process remembers its own write. When the watch
// is back, no event mentions the child, but the new controller must still create it again.
func TestMissedWriteWakesTheNextController(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, w *world, l *life){
		"restarted": func(t *testing.T, _ *world, l *life) {
			if err := l.Restart(t.Context(), "configmap"); err != nil {
				t.Fatal(err)
			}
		},
		"lease lost": func(_ *testing.T, w *world, _ *life) {
			w.refuse(leases)
			time.Sleep(20 * time.Second)
			w.refuse(nil)
			time.Sleep(20 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { missedOverTenures(t, next) }) })
	}
}

func missedOverTenures(t *testing.T, next func(t *testing.T, w *world, l *life)) {
	w := newWorld(t)
	var cut atomic.Bool
	w.cuts = func(r *gate.Request) bool { return cut.Load() && r.Resource == "secrets" }
	m := w.manager(t, surviving())
	runs := 0
	err := builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(
		reconcile.Func[reconcile.Request](func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var parent corev1.ConfigMap
			if err := m.GetClient().Get(ctx, r.NamespacedName, &parent); err != nil || r.Name != "parent" {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			runs++
			child := &corev1.Secret{}
			child.Namespace, child.Name = r.Namespace, "child"
			_, err := controllerutil.CreateOrUpdate(ctx, m.GetClient(), child, func() error {
				return controllerutil.SetControllerReference(&parent, child, m.GetScheme())
			})
			return reconcile.Result{}, err
		}))
	must(t, err)
	l := live(t, m)
	defer l.mustEnd()
	time.Sleep(time.Second)
	cut.Store(true)
	w.create(t, m, "parent")
	time.Sleep(time.Second)
	admin, err := client.New(w.server.RESTConfig(), client.Options{})
	must(t, err)
	child := &corev1.Secret{}
	child.Namespace, child.Name = "default", "child"
	must(t, admin.Delete(t.Context(), child))
	next(t, w, l)
	synctest.Wait()
	if runs != 2 {
		t.Fatalf("%d runs, want one of each controller", runs)
	}
	must(t, w.server.Compact(t.Context()))
	cut.Store(false)
	time.Sleep(3 * time.Hour)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
		t.Errorf("after %d runs: %v", runs, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
