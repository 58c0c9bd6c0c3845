package cachecheck

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/versions"
)

// Written is what an answer says about a write.
type Written struct {
	Resource        schema.GroupResource
	Namespace, Name string
	UID             types.UID // "" if the answer did not say
	// ResourceVersion is that of the written state; "" after a deletion that was answered without one.
	ResourceVersion string
}

// Reflects reports whether every cache that would hold the object has reached the write.
//
// A cache whose selectors leave the object out looks like one that is behind until something else moves its watermark.
// So callers must not wait without limit, except for [Caches.WillReflect].
func (c Caches) Reflects(w Written) bool {
	for _, cache := range c.holding(w) {
		if !cache.store.HasSynced() || !cache.reflects(w) {
			return false
		}
	}
	return true
}

// WillReflect reports whether a cache that is behind the write is sure to reach it, however slow the watch: the cache
// takes every object of the namespace, and the answer said what to look for.
func (c Caches) WillReflect(w Written) bool {
	for _, cache := range c.holding(w) {
		if cache.Selection.takesAll() && cache.store.HasSynced() && cache.willReflect(w) && !cache.reflects(w) {
			return true
		}
	}
	return false
}

// holding returns the caches that would hold the object, if their selectors do not leave it out.
func (c Caches) holding(w Written) (all []*Cache) {
	for _, cache := range c.All {
		if cache.isOf(w.Resource) && cache.Selection.Follows(w.Namespace) {
			all = append(all, cache)
		}
	}
	return all
}

// isOf reports whether the cache is of a resource. Until the resource is discovered, Resource is a guess.
func (c *Cache) isOf(resource schema.GroupResource) bool {
	if c.Discovered != nil {
		if found, ok := c.Discovered(); ok {
			return found == resource
		}
	}
	return c.Resource == resource.String()
}

func (c *Cache) reflects(w Written) bool {
	if w.ResourceVersion == "" {
		obj, found := c.store.Get(w.Namespace, w.Name)
		return !found || w.UID != "" && obj.GetUID() != w.UID
	}
	mark := c.store.NamespaceResourceVersion(w.Namespace)
	if versions.Comparable(mark) && versions.Comparable(w.ResourceVersion) {
		return versions.Reached(mark, w.ResourceVersion)
	}
	obj, found := c.store.Get(w.Namespace, w.Name)
	return found && obj.GetResourceVersion() == w.ResourceVersion
}

// willReflect reports whether reflects becomes true for good at some point. It does not if the versions cannot be
// compared, nor if a new object of that name cannot be told from the deleted one.
func (c *Cache) willReflect(w Written) bool {
	if w.ResourceVersion == "" {
		return w.UID != ""
	}
	return versions.Comparable(c.store.NamespaceResourceVersion(w.Namespace)) && versions.Comparable(w.ResourceVersion)
}
