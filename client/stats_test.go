package client_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
)

// Reads do not wait for own writes that the overlay shows. They wait for the cache after a DeleteAllOf, at most a
// second.
func TestStats(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = 400 * time.Millisecond })
		w.warm(&corev1.ConfigMapList{})
		w.must(w.Create(w.ctx, configMap("a")))
		w.wantNames("a b")
		if got, want := w.Stats(), (client.Stats{Unseen: 1, Expected: 1}); got != want {
			t.Errorf("with an overlay %+v, want %+v", got, want)
		}
		time.Sleep(time.Second)
		if got, want := w.Stats(), (client.Stats{}); got != want {
			t.Errorf("when all is seen %+v, want %+v", got, want)
		}
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default")))
		if got, want := w.Stats(), (client.Stats{Unknown: 1}); got != want {
			t.Errorf("after deleting all %+v, want %+v", got, want)
		}
		start := time.Now()
		w.wantNames("")
		want := client.Stats{Waits: 1, Waited: time.Since(start)}
		if got := w.Stats(); got != want || got.Waited < 300*time.Millisecond {
			t.Errorf("after a wait %+v, want %+v", got, want)
		}
		w.set(func() { w.lag = time.Hour })
		w.must(w.Create(w.ctx, configMap("c")))
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default")))
		if err := w.List(w.ctx, &corev1.ConfigMapList{}); !errors.Is(err, client.ErrStale) {
			t.Errorf("list: %v", err)
		}
		want = client.Stats{Waits: 2, Waited: want.Waited + time.Second, Stale: 1, Unseen: 1, Unknown: 1, Expected: 1}
		if got := w.Stats(); got != want {
			t.Errorf("after giving up %+v, want %+v", got, want)
		}
	}, configMap("b"))
}
