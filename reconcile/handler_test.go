package reconcile

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// enqueued is an Enqueuer that remembers.
type enqueued []string

func (e *enqueued) Add(key Request)                       { *e = append(*e, key.String()) }
func (e *enqueued) AddAfter(key Request, _ time.Duration) { *e = append(*e, key.String()) }
func (e *enqueued) AddRateLimited(key Request)            { *e = append(*e, key.String()) }
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
	h := EnqueueMapped(func(_ context.Context, p *corev1.Pod) []Request {
		var keys []Request
		for name := range p.Labels {
			keys = append(keys, RequestFor(pod(name)))
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
