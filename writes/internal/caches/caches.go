package caches

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/versions"
)

// Set has the caches of a factory and the states that they are expected to show.
//
// Concurrency: all methods may be called from any goroutine. History, Holding, Show and WillShow take no lock of the
// Set.
type Set struct {
	factory factory

	mu sync.Mutex
	// awaiting has the caches that are observed: those of which a state is expected, or was expected when their last
	// batch came. It has no others, so that the Set does not keep caches in memory that the factory has dropped.
	awaiting map[informer.Cache]*awaiting
}

// factory is the part of [informer.Factory] that a Set needs.
type factory interface {
	Caches() []informer.Cache
	History() int64
}

// none is a factory without caches.
type none struct{}

func (none) Caches() []informer.Cache { return nil }
func (none) History() int64           { return 0 }

// Of returns the caches of a factory; none for nil.
func Of(f *informer.Factory) *Set {
	if f == nil {
		return newSet(none{})
	}
	return newSet(f)
}

func newSet(f factory) *Set { return &Set{factory: f, awaiting: map[informer.Cache]*awaiting{}} }

// None reports whether the Set has no factory.
func (s *Set) None() bool { return s.factory == none{} }

// From reports whether the Set has the caches of f.
func (s *Set) From(f *informer.Factory) bool { return s.factory == factory(f) }

// All returns the caches in use. The caller must not change the slice.
func (s *Set) All() []informer.Cache { return s.factory.Caches() }

// History returns the number of the server's history. It is 0 if there are no caches. Writes made at a lower number
// belong to an earlier history, and so do the resource versions of their answers.
func (s *Set) History() int64 { return s.factory.History() }

// Written is what an answer tells about a write.
type Written struct {
	Resource schema.GroupResource
	Key      types.NamespacedName
	UID      types.UID // "" if the answer did not tell
	// ResourceVersion is that of the written state; "" after a deletion whose answer had no version.
	ResourceVersion string
}

// Show reports whether every cache that would hold the object has reached the write.
//
// If the selectors of a cache leave the object out, the cache looks as if it were behind until something else moves its
// watermark. So callers must not wait without limit, except for [Set.WillShow].
func (s *Set) Show(w Written) bool {
	return !slices.ContainsFunc(s.Holding(w.Resource, w.Key.Namespace), func(c informer.Cache) bool {
		return !c.HasSynced() || !shows(c, w)
	})
}

// WillShow reports whether some cache is behind the write and is sure to reach it, however slow the watch is: the cache
// holds every object of the namespace, and the answer shows which state to wait for.
func (s *Set) WillShow(w Written) bool {
	return slices.ContainsFunc(s.Holding(w.Resource, w.Key.Namespace), func(c informer.Cache) bool {
		return takesAll(c.Selection()) && c.HasSynced() && willShow(c, w) && !shows(c, w)
	})
}

// Holding returns the caches of a resource that take objects of the namespace. Their selectors may still leave an
// object out.
func (s *Set) Holding(resource schema.GroupResource, namespace string) (holding []informer.Cache) {
	for _, c := range s.All() {
		if c.IsOf(resource) && Takes(c.Selection().Namespaces, namespace) {
			holding = append(holding, c)
		}
	}
	return holding
}

// Takes reports whether a cache of the namespaces (none means all) holds objects of the namespace ("" for
// cluster-scoped objects).
func Takes(namespaces []string, namespace string) bool {
	return namespace == "" || len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}

// takesAll reports whether there are no selectors.
func takesAll(o *informer.InformerOptions) bool {
	return o.LabelSelector == "" && o.FieldSelector == "" && o.ShardSelector == ""
}

func shows(c informer.Cache, w Written) bool {
	if w.ResourceVersion == "" {
		obj, found := c.Get(w.Key.Namespace, w.Key.Name)
		return !found || w.UID != "" && obj.GetUID() != w.UID
	}
	mark := c.NamespaceResourceVersion(w.Key.Namespace)
	if versions.Comparable(mark) && versions.Comparable(w.ResourceVersion) {
		return versions.Reached(mark, w.ResourceVersion)
	}
	obj, found := c.Get(w.Key.Namespace, w.Key.Name)
	return found && obj.GetResourceVersion() == w.ResourceVersion
}

// willShow reports whether shows becomes true for good at some point. It does not if the versions cannot be compared,
// nor if a new object of that name cannot be told from the deleted one.
func willShow(c informer.Cache, w Written) bool {
	if w.ResourceVersion == "" {
		return w.UID != ""
	}
	return versions.Comparable(c.NamespaceResourceVersion(w.Key.Namespace)) && versions.Comparable(w.ResourceVersion)
}
