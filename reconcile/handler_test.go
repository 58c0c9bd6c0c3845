package reconcile

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

func ref(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller}
}

func TestEnqueueObject(t *testing.T) {
	h, got := EnqueueObject[*corev1.Pod](), enqueued{}
	h.OnAdd(t.Context(), pod("a"), true, &got)
	h.OnUpdate(t.Context(), pod("b"), pod("b"), &got)
	h.OnDelete(t.Context(), informer.Deleted[*corev1.Pod]{Object: pod("c")}, &got)
	want(t, got, []string{"ns/a", "ns/b", "ns/c"})
}

func TestEnqueueOwner(t *testing.T) {
	h := EnqueueOwner[*corev1.Pod](schema.GroupKind{Group: "apps", Kind: "ReplicaSet"})
	mine := ref("apps/v1", "ReplicaSet", "mine", true)
	for name, c := range map[string]struct {
		owner []metav1.OwnerReference
		want  []string
	}{
		"none":                 {nil, nil},
		"the controller":       {[]metav1.OwnerReference{ref("v1", "Node", "n", false), mine}, []string{"ns/mine"}},
		"another version":      {[]metav1.OwnerReference{ref("apps/v1beta9", "ReplicaSet", "mine", true)}, []string{"ns/mine"}},
		"another group":        {[]metav1.OwnerReference{ref("example.com/v1", "ReplicaSet", "mine", true)}, nil},
		"another kind":         {[]metav1.OwnerReference{ref("apps/v1", "StatefulSet", "mine", true)}, nil},
		"owner, no controller": {[]metav1.OwnerReference{ref("apps/v1", "ReplicaSet", "mine", false)}, nil},
		"malformed":            {[]metav1.OwnerReference{ref("a/b/c", "ReplicaSet", "mine", true)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got enqueued
			h.OnAdd(t.Context(), pod("a", c.owner...), false, &got)
			want(t, got, c.want)
		})
	}
	t.Run("moves from one to another", func(t *testing.T) {
		var got enqueued
		h.OnUpdate(t.Context(), pod("a", mine), pod("a", ref("apps/v1", "ReplicaSet", "new", true)), &got)
		want(t, got, []string{"ns/new", "ns/mine"})
	})
	t.Run("is released", func(t *testing.T) {
		var got enqueued
		h.OnUpdate(t.Context(), pod("a", mine), pod("a"), &got)
		want(t, got, []string{"ns/mine"})
	})
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
