package handler

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// enqueued is an Enqueuer that records the keys.
type enqueued []string

func (e *enqueued) Add(key reconcile.Request) { *e = append(*e, key.String()) }

func (e *enqueued) AddAfter(key reconcile.Request, _ time.Duration) { *e = append(*e, key.String()) }

func (e *enqueued) AddRateLimited(key reconcile.Request) { *e = append(*e, key.String()) }

func (e *enqueued) AddWith(key reconcile.Request, _ workqueue.AddOptions) { e.Add(key) }

func pod(name string, owner ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owner}}
}

func TestEnqueueObject(t *testing.T) {
	h, got := EnqueueObject[*corev1.Pod](), enqueued{}
	h.OnAdd(t.Context(), pod("a"), true, &got)
	h.OnUpdate(t.Context(), pod("b"), pod("b"), &got)
	h.OnDelete(t.Context(), informer.Deleted[*corev1.Pod]{Object: pod("c")}, &got)
	want(t, got, []string{"ns/a", "ns/b", "ns/c"})
}

func TestEnqueueMappedAsksForOldAndNew(t *testing.T) {
	h := EnqueueMapped(func(_ context.Context, p *corev1.Pod) []reconcile.Request {
		var keys []reconcile.Request
		for name := range p.Labels {
			keys = append(keys, reconcile.RequestFor(pod(name)))
		}
		return keys
	})
	old, now := pod("a"), pod("a")
	old.Labels, now.Labels = map[string]string{"left": ""}, map[string]string{"joined": ""}
	var got enqueued
	h.OnUpdate(t.Context(), old, now, &got)
	h.OnUpdate(t.Context(), now, now, &got)
	want(t, got, []string{"ns/joined", "ns/left", "ns/joined"})
}

func want(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
