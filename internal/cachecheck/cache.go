package cachecheck

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Store is the part of an informer that this package needs. The methods are those of informer.SharedInformer.
type Store interface {
	Get(namespace, name string) (metav1.Object, bool)
	HasSynced() bool
	NamespaceResourceVersion(namespace string) string
	// Rebuilds counts how often the cache went back to an earlier resource version.
	Rebuilds() int64
	// Relist lists the objects of a namespace anew, and makes the next list check whether another server has taken the
	// place of this one.
	Relist(namespace string)
}

// Cache is the cache of one informer, with the states expected of it and the server's contradictions.
//
// Concurrency: all methods may be called from any goroutine.
type Cache struct {
	// Resource is the plural name with the group, for messages. A factory guesses it from the kind.
	Resource string
	// Discovered returns the resource once it was discovered. Nil if Resource is not a guess.
	Discovered func() (schema.GroupResource, bool)
	// Selection is set by a factory before the informer is used.
	Selection Selection

	store          Store
	expected       expectations
	contradictions contradictions
}

// New returns the cache of an informer.
func New(resource string, store Store) *Cache { return &Cache{Resource: resource, store: store} }

// Store returns the informer's cache.
func (c *Cache) Store() Store { return c.store }

// Caches are the caches of a factory. The zero value has none.
type Caches struct {
	// All is shared: it must not be changed.
	All []*Cache
	// History numbers the histories of the server, as far as the factory's informers have noticed. It rises when the
	// history went back or another server took the place of the last one. Writes made at a lower number belong to an
	// earlier history, and so do the resource versions of their answers.
	History int64
}

// Selection says which objects of a server a cache holds.
type Selection struct {
	Kind schema.GroupVersionKind
	// Namespaces is a comma-separated list; "" means all.
	Namespaces string
	// The selectors are as in the requests to the server. "" selects all.
	LabelSelector, FieldSelector, ShardSelector string
}

// takesAll reports whether no selector leaves objects out.
func (s *Selection) takesAll() bool {
	return s.LabelSelector == "" && s.FieldSelector == "" && s.ShardSelector == ""
}

// Follows reports whether the cache holds objects of the namespace.
func (s *Selection) Follows(namespace string) bool {
	return namespace == "" || s.Namespaces == "" || slices.Contains(strings.Split(s.Namespaces, ","), namespace)
}

// selects reports whether the cache would hold the state. Only the server knows an object's shard, so nothing is
// expected of a cache with a shard selector.
func (s *Selection) selects(e *Expected) bool {
	if s.takesAll() || s.ShardSelector == "" && e.Selected == nil {
		return true
	}
	byLabels, err := labels.Parse(s.LabelSelector)
	byFields, invalid := fieldselector.ParseSelector(s.FieldSelector)
	return s.ShardSelector == "" && err == nil && invalid == nil && e.Selected(byLabels, byFields)
}

// state identifies one state of one object.
type state struct {
	uid     types.UID
	version string
}

func stateOf(obj metav1.Object) state { return state{obj.GetUID(), obj.GetResourceVersion()} }
