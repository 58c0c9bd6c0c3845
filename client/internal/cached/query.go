package cached

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// ObjectKey names an object within its resource.
type ObjectKey = types.NamespacedName

// ErrNoIndex reports that a cached list selects by a field that has no index.
var ErrNoIndex = errors.New("no index on that field; IndexField adds one")

// The fields that need no index.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// Query is a read of one object or a list.
type Query struct {
	// Key names one object. For a list, the name is empty and the namespace is the list's ("" means all).
	Key ObjectKey
	// Labels and Fields select from a list; nil selects all.
	Labels labels.Selector
	Fields fields.Set

	found [1]informer.Object // Where Read returns the object that Key names.
}

// Lists reports whether q is a list.
func (q *Query) Lists() bool { return q.Key.Name == "" }

// Matches reports whether obj, in the Go form of the cache's objects, belongs into the result of q.
func (c *Cache) Matches(q *Query, obj informer.Object) bool {
	if !c.selects(obj) || (q.Key.Namespace != "" && q.Key.Namespace != obj.GetNamespace()) {
		return false
	}
	if !q.Lists() {
		return q.Key.Name == obj.GetName() && q.Key.Namespace == obj.GetNamespace()
	}
	if q.Labels != nil && !q.Labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	for field, value := range q.Fields {
		if !c.hasField(obj, field, value) {
			return false
		}
	}
	return true
}

// hasField reports whether the index on the field finds obj by value.
func (c *Cache) hasField(obj informer.Object, field, value string) bool {
	switch field {
	case fieldName:
		return obj.GetName() == value
	case fieldNamespace:
		return obj.GetNamespace() == value
	}
	extract := c.index(field)
	return extract != nil && slices.Contains(extract(obj), value)
}

// Read returns the objects of the informer that match q, without regard to own writes. The result is valid until the
// next Read of q.
//
// Errors: [ErrNoIndex].
func (c *Cache) Read(q *Query) ([]informer.Object, error) {
	if !q.Lists() {
		obj, found := c.Get(q.Key)
		if !found {
			return nil, nil
		}
		q.found[0] = obj
		return q.found[:], nil
	}
	objs, filter, err := c.narrow(q)
	if err != nil || !filter {
		return objs, err
	}
	return slices.DeleteFunc(objs, func(obj informer.Object) bool { return !c.Matches(q, obj) }), nil
}

// narrow reads the objects that may match q: those of one index, or else of the namespace and labels. filter reports
// whether some of them may not match.
func (c *Cache) narrow(q *Query) (objs []informer.Object, filter bool, err error) {
	for _, field := range slices.Sorted(maps.Keys(q.Fields)) {
		if field == fieldName || field == fieldNamespace {
			continue
		}
		if c.index(field) == nil {
			return nil, false, fmt.Errorf("list %s by %s from the cache: %w", c.Kind.GVK.Kind, field, ErrNoIndex)
		}
	}
	for field, value := range q.Fields {
		if c.index(field) == nil {
			continue
		}
		objs, err = c.informer.ByIndex(field, value)
		return objs, q.Key.Namespace != "" || q.Labels != nil || len(q.Fields) > 1, err
	}
	return c.informer.List(q.Key.Namespace, q.Labels), len(q.Fields) > 0, nil
}
