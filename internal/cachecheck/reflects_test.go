package cachecheck

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// behind is the store of a cache that has reached version 5.
type behind struct{ Store }

func (behind) Get(string, string) (metav1.Object, bool) { return nil, false }
func (behind) HasSynced() bool                          { return true }
func (behind) NamespaceResourceVersion(string) string   { return "5" }

// A cache is found by the resource that discovery named, not by the one that its kind suggests.
func TestCacheIsFoundByItsResource(t *testing.T) {
	flock := schema.GroupResource{Group: "example.com", Resource: "flock"}
	c := New("sheeps.example.com", behind{})
	c.Selection.Kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Sheep"}
	caches := Caches{All: []*Cache{c}}
	w := Written{Resource: flock, Namespace: "default", Name: "dolly", ResourceVersion: "6"}
	if !caches.Reflects(w) {
		t.Error("a cache of another resource counts")
	}
	c.Discovered = func() (schema.GroupResource, bool) { return flock, true }
	if caches.Reflects(w) {
		t.Error("the cache is behind, and is not found")
	}
}
