package caches

import (
	"iter"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// fakeFactory has one cache.
type fakeFactory struct{ cache *fakeCache }

func (f fakeFactory) Caches() []informer.Cache { return []informer.Cache{f.cache} }
func (f fakeFactory) History() int64           { return 0 }

// fakeCache holds the objects of one kind in one namespace.
type fakeCache struct {
	informer.Cache
	selection informer.InformerOptions
	// discovered is the resource that discovery has named.
	discovered schema.GroupResource
	watermark  string
	objects    map[string]*metav1.PartialObjectMetadata
	observer   func(shown iter.Seq[informer.Object])
}

func (c *fakeCache) IsOf(r schema.GroupResource) bool       { return r == c.discovered }
func (c *fakeCache) Selection() *informer.InformerOptions   { return &c.selection }
func (c *fakeCache) HasSynced() bool                        { return true }
func (c *fakeCache) NamespaceResourceVersion(string) string { return c.watermark }
func (c *fakeCache) Get(_, name string) (informer.Object, bool) {
	obj, found := c.objects[name]
	return obj, found
}

// A cache counts if it is of the resource and takes the namespace.
func TestShow(t *testing.T) {
	flock := schema.GroupResource{Group: "example.com", Resource: "flock"}
	c := &fakeCache{watermark: "5"}
	s := newSet(fakeFactory{c})
	w := Written{
		Resource: flock, Key: types.NamespacedName{Namespace: "default", Name: "dolly"}, ResourceVersion: "6",
	}
	if !s.Show(w) || s.WillShow(w) {
		t.Error("a cache of another resource counts")
	}
	c.discovered = flock
	if s.Show(w) || !s.WillShow(w) {
		t.Error("the cache is behind, and does not count")
	}
	c.selection.LabelSelector = "app"
	if s.Show(w) || s.WillShow(w) {
		t.Error("a cache with a selector is sure to show the write")
	}
	c.selection.Namespaces = []string{"other"}
	if !s.Show(w) {
		t.Error("a cache of another namespace counts")
	}
	if none := Of(nil); !none.Show(w) || none.WillShow(w) || none.History() != 0 || none.Expected() != 0 {
		t.Error("there are no caches, and one is behind")
	}
}
