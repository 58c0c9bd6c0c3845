package informer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Written is what an answer says of a write.
type Written struct {
	Resource        schema.GroupResource
	Namespace, Name string
	UID             types.UID // "" if the answer did not say
	// ResourceVersion is that of the written state. "" after a deletion that was answered without one.
	ResourceVersion string
}

// Reflects reports whether every cache of the resource is past the write, or is none that would hold the object. A
// cache whose selectors leave the object out is told from one that is behind only when something else moves its
// watermark: do not wait for ever, but for what [Factory.WillReflect].
func (f *Factory) Reflects(w Written) bool {
	for _, c := range f.holding(w) {
		if !c.informer.HasSynced() || !c.informer.reflects(w) {
			return false
		}
	}
	return true
}

// WillReflect reports whether a cache that is behind the write is sure to come past it, however slow the watch: it
// takes every object of the namespace, and the answer said what to look for.
func (f *Factory) WillReflect(w Written) bool {
	for _, c := range f.holding(w) {
		if c.identity.takesAll() && c.informer.HasSynced() && c.informer.willReflect(w) && !c.informer.reflects(w) {
			return true
		}
	}
	return false
}

// holding are the caches that would hold the object, if their selectors do not leave it out.
func (f *Factory) holding(w Written) (all []*cache) {
	for _, c := range f.all() {
		plural, _ := meta.UnsafeGuessKindToResource(c.identity.kind)
		if plural.GroupResource() == w.Resource && c.identity.follows(w.Namespace) {
			all = append(all, c)
		}
	}
	return all
}

// takesAll reports whether no selector leaves objects out.
func (id cacheIdentity) takesAll() bool {
	return id.labelSelector == "" && id.fieldSelector == "" && id.shardSelector == ""
}

// follows reports whether a cache with that identity holds objects of the namespace.
func (id cacheIdentity) follows(namespace string) bool {
	return namespace == "" || id.namespaces == "" || slices.Contains(strings.Split(id.namespaces, ","), namespace)
}

func (s *SharedInformer[T]) reflects(w Written) bool {
	if w.ResourceVersion == "" {
		obj, found := s.Get(w.Namespace, w.Name)
		return !found || w.UID != "" && obj.GetUID() != w.UID
	}
	order, err := resourceversion.CompareResourceVersion(s.NamespaceResourceVersion(w.Namespace), w.ResourceVersion)
	if err == nil && order >= 0 {
		return true
	}
	obj, found := s.Get(w.Namespace, w.Name) // a server whose versions cannot be compared
	return err != nil && found && obj.GetResourceVersion() == w.ResourceVersion
}

// willReflect reports whether there is a state in which reflects is true for ever after: not if the versions cannot
// be compared, nor if an object of that name that was made since cannot be told from the one that was deleted.
func (s *SharedInformer[T]) willReflect(w Written) bool {
	if w.ResourceVersion == "" {
		return w.UID != ""
	}
	_, err := resourceversion.CompareResourceVersion(s.NamespaceResourceVersion(w.Namespace), w.ResourceVersion)
	return err == nil
}
