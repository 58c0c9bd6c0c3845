package handler

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

func TestFilterPutsPredicatesBeforeAHandler(t *testing.T) {
	old, now := pod("old"), pod("new")
	only := func(kind predicate.EventType) EventHandler[*corev1.Pod, reconcile.Request] {
		return Filter(EnqueueObject[*corev1.Pod](), func(e predicate.Event[*corev1.Pod]) bool {
			if e.Type == predicate.Add && !e.Initial {
				t.Error("the add lost that it is initial")
			}
			if e.Type == predicate.Update && (e.Old != old || e.Object != now) {
				t.Errorf("update of %v to %v", e.Old, e.Object)
			}
			return e.Type == kind
		})
	}
	for _, c := range []struct {
		kind predicate.EventType
		want []string
	}{
		{predicate.Add, []string{"ns/new"}},
		{predicate.Update, []string{"ns/new", "ns/old"}},
		{predicate.Delete, []string{"ns/new"}},
	} {
		var q enqueued
		h := only(c.kind)
		h.OnAdd(context.Background(), now, true, &q)
		h.OnUpdate(context.Background(), old, now, &q)
		h.OnDelete(context.Background(), informer.Deleted[*corev1.Pod]{Object: now}, &q)
		want(t, q, c.want)
	}
	h := Filter(EventHandler[*corev1.Pod, reconcile.Request]{})
	if h.OnAdd != nil || h.OnUpdate != nil || h.OnDelete != nil {
		t.Error("a handler that ignores a kind of event is called for it")
	}
}
