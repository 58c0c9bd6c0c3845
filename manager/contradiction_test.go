package manager_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
)

// TestContradictionIsSettledByAList has a watch that is stuck, so that the cache still has a deleted object. Writes to
// the object reveal this: after the server has answered NotFound for a second, the cache is listed again. Until that is
// done, /readyz reports the contradiction.
func TestContradictionIsSettledByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var stuck atomic.Bool
		w.frames = func(ctx context.Context, _ gate.Frame) {
			if stuck.Load() {
				<-ctx.Done()
			}
		}
		m := w.manager(t, manager.Options{})
		maps, err := informer.For[*corev1.ConfigMap](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		w.create(t, m, "a")
		synctest.Wait()
		held, found := maps.Get("default", "a")
		if !found {
			t.Fatal("not in the cache")
		}
		stuck.Store(true)
		api := clientset(m).CoreV1().ConfigMaps("default")
		if err := api.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		write := func() {
			t.Helper()
			if _, err := api.Update(t.Context(), held.DeepCopy(), metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("update: %v", err)
			}
			synctest.Wait()
		}
		write()
		time.Sleep(500 * time.Millisecond)
		write()
		if _, found := maps.Get("default", "a"); !found || m.Ready() != nil {
			t.Errorf("half a second of delay counts: in the cache %v, ready %v", found, m.Ready())
		}
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Verb == "list" {
				time.Sleep(3 * time.Second)
			}
			return gate.Verdict{}
		})
		time.Sleep(time.Second)
		write()
		const says = "informer configmaps: the server has had no configmaps default/a for 2s, but the cache holds " +
			"it: " +
			"relisting"
		if err := m.Ready(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(4 * time.Second)
		if _, found := maps.Get("default", "a"); found || m.Ready() != nil {
			t.Errorf("after the list: in the cache %v, ready %v", found, m.Ready())
		}
		stuck.Store(false)
		l.mustEnd()
	})
}
