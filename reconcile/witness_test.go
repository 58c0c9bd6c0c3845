package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/reconcile"
)

// Case: while the watch is cut a reconcile creates a child, and somebody deletes it. The next list has nothing to tell. The
// key runs again all the same, once, because of that, and makes another.
func TestVanishedChildWakesItsOwner(t *testing.T) {
	var cut atomic.Bool
	g := gate.Funcs{OnFrame: func(_ context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if cut.Load() && r.Resource == "secrets" {
			return gate.Verdict{Action: gate.Close}
		}
		return gate.Verdict{}
	}}
	var why []string
	inProcess(t, g, func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]) {
		return reconcile.Func[reconcile.Request](func(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
			if key.Name != "owner" {
				return reconcile.Result{}, nil
			}
			for _, c := range reconcile.Causes(ctx) {
				why = append(why, fmt.Sprintf("%s %s", c.Source, c.Event))
			}
			var children corev1.SecretList
			if err := p.List(ctx, &children); err != nil || len(children.Items) > 0 {
				return reconcile.Result{}, err
			}
			child := &corev1.Secret{}
			child.Namespace, child.GenerateName = key.Namespace, "child-"
			return reconcile.Result{}, p.Create(ctx, child)
		}), reconcile.Options[reconcile.Request]{}
	}, func(ctx context.Context, p *process) {
		synctest.Wait() // The owner is not there yet; the caches of Secrets are made by the first read.
		var none corev1.SecretList
		if err := p.List(ctx, &none); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cut.Store(true)
		them, err := client.New(p.api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := them.Create(ctx, configMap("owner")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var children corev1.SecretList
		if err := them.List(ctx, &children); err != nil || len(children.Items) != 1 {
			t.Fatalf("%d children, %v", len(children.Items), err)
		}
		if err := them.Delete(ctx, &children.Items[0]); err != nil {
			t.Fatal(err)
		}
		if err := p.api.Compact(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cut.Store(false)
		time.Sleep(24 * time.Hour)
		creates := p.api.Audit().Entries(func(e audit.Entry) bool { return e.Resource == "secrets" && e.Verb == "create" })
		if want := []string{"configmaps Add", "secrets Vanished"}; !slices.Equal(why, want) || len(creates) != 2 {
			t.Errorf("ran because of %v, want %v; %d children were created", why, want, len(creates))
		}
	})
}
