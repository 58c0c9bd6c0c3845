package client_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

// TestTerminatingNamespaceIsThere: a deleted Namespace stays until it is empty. The answers to its deletion and to an
// update do not mean that it is gone.
func TestTerminatingNamespaceIsThere(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.NamespaceList{})
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		w.must(w.Create(w.ctx, ns))
		w.must(w.Delete(w.ctx, ns))
		w.must(w.Get(w.ctx, client.ObjectKey{Name: "a"}, ns))
		if ns.DeletionTimestamp == nil || ns.DeletionGracePeriodSeconds != nil || len(ns.Spec.Finalizers) == 0 {
			t.Fatalf("after the deletion: %+v", ns)
		}
		ns.Labels = map[string]string{"seen": "yes"}
		w.must(w.Update(w.ctx, ns))
		w.must(w.Get(w.ctx, client.ObjectKey{Name: "a"}, ns))
		if ns.Labels["seen"] != "yes" {
			t.Errorf("after the update: %+v", ns)
		}
	})
}
