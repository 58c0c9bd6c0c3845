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

// Reflects says whether every cache of the resource is past the write, or is none that would hold the object. A cache whose
// selectors leave the object out is told from one that is behind only when something else moves its watermark: do not wait for
// ever.
func (f *Factory) Reflects(w Written) bool {
	for _, c := range f.all() {
		plural, _ := meta.UnsafeGuessKindToResource(c.identity.kind)
		if plural.GroupResource() != w.Resource || !c.identity.follows(w.Namespace) {
			continue
		}
		if !c.informer.HasSynced() || !c.informer.reflects(w) {
			return false
		}
	}
	return true
}

// follows says whether a cache with that identity holds objects of the namespace.
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
