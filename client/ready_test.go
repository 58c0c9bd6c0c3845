package client_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
)

// Ready is the gate for reconcilers that read by listers.
func TestReadyGatesAnOwner(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Second })
		w.warm(&corev1.ConfigMapList{})
		ctx := client.WithOwner(w.ctx, "me")
		w.must(w.Create(ctx, configMap("a")))
		if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
		w.must(w.Ready(w.ctx, "you"))
		time.Sleep(1100 * time.Millisecond)
		w.must(w.Ready(w.ctx, "me"))
		w.must(w.Delete(ctx, configMap("a")))
		if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready after a delete: %v", err)
		}
		time.Sleep(1100 * time.Millisecond)
		w.must(w.Ready(w.ctx, "me"))
	})
}
