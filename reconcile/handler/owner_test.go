package handler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func ref(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller}
}

func TestEnqueueOwner(t *testing.T) {
	h := EnqueueOwner[*corev1.Pod](schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, OwnerOptions{})
	mine := ref("apps/v1", "ReplicaSet", "mine", true)
	for name, c := range map[string]struct {
		owner []metav1.OwnerReference
		want  []string
	}{
		"none":           {nil, nil},
		"the controller": {[]metav1.OwnerReference{ref("v1", "Node", "n", false), mine}, []string{"ns/mine"}},
		"another version": {
			[]metav1.OwnerReference{ref("apps/v1beta9", "ReplicaSet", "mine", true)},
			[]string{"ns/mine"},
		},
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

// A cluster-scoped owner may own an object with a namespace. Its key has no namespace. An owner reference does not show
// this, so the caller has to.
//
// Source: sigs.k8s.io/controller-runtime v0.25.2 pkg/handler/enqueue_owner.go, getOwnerReconcileRequest.
func TestEnqueueClusterScopedOwner(t *testing.T) {
	h := EnqueueOwner[*corev1.Pod](schema.GroupKind{Kind: "Node"}, OwnerOptions{ClusterScoped: true})
	var got enqueued
	h.OnAdd(t.Context(), pod("a", ref("v1", "Node", "n", true)), false, &got)
	want(t, got, []string{"/n"})
}

// With EveryOwner each owner of the kind is queued once, and no owner of another kind.
func TestEnqueueEveryOwner(t *testing.T) {
	h := EnqueueOwner[*corev1.Pod](schema.GroupKind{Kind: "ConfigMap"}, OwnerOptions{EveryOwner: true})
	var got enqueued
	h.OnAdd(t.Context(),
		pod("a", ref("v1", "ConfigMap", "x", false), ref("v1", "Secret", "s", true),
			ref("v1", "ConfigMap", "y", false)), false, &got)
	want(t, got, []string{"ns/x", "ns/y"})
}
