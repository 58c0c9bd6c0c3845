package client_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
)

// Ready is the gate for those who read by listers.
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

// Without an owner in the context a write is made in the name of the object's controller. One that lives in no
// namespace is asked for without one, though what it owns does.
func TestReadyOfTheController(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Second })
		w.warm(&corev1.ConfigMapList{})
		child, yes := configMap("a"), true
		child.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1", Controller: &yes},
		}
		w.must(w.Create(w.ctx, child))
		node := client.ControllerOwner{
			GroupKind: schema.GroupKind{Kind: "Node"},
			ObjectKey: client.ObjectKey{Name: "n"},
		}
		inDefault, elsewhere, other := node, node, node
		inDefault.Namespace, elsewhere.Namespace, other.Name = "default", "kube-system", "m"
		for _, owner := range []client.ControllerOwner{node, inDefault} {
			if err := w.Ready(w.ctx, owner); !errors.Is(err, client.ErrStale) {
				t.Errorf("%v: %v", owner, err)
			}
		}
		w.must(w.Ready(w.ctx, elsewhere))
		w.must(w.Ready(w.ctx, other))
		time.Sleep(1100 * time.Millisecond)
		w.must(w.Ready(w.ctx, node))
	})
}
