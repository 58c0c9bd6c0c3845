package client

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// ErrNoIndex says that a cached list selects by a field that no index was made for; see [Cluster.IndexField].
var ErrNoIndex = errors.New("no index of that field")

// The fields that need no index.
const (
	fieldName      = "metadata.name"
	fieldNamespace = "metadata.namespace"
)

// query is what a read asks for.
type query struct {
	// key names one object; its name is empty for a list, its namespace then the list's.
	key ObjectKey
	ListOptions
}

func (q *query) lists() bool { return q.key.Name == "" }

// matches says whether obj, of the cache's representation, is an answer to q.
func (c *cache) matches(q *query, obj Object) bool {
	if !c.holds(obj) || (q.key.Namespace != "" && q.key.Namespace != obj.GetNamespace()) {
		return false
	}
	if !q.lists() {
		return q.key == ObjectKeyFromObject(obj)
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

func (c *cache) hasField(obj Object, field, value string) bool {
	switch field {
	case fieldName:
		return obj.GetName() == value
	case fieldNamespace:
		return obj.GetNamespace() == value
	}
	extract := c.index(field)
	return extract != nil && slices.Contains(extract(obj), value)
}

// read asks the informer's cache, without regard to own writes.
//
// Errors: [ErrNoIndex].
func (c *cache) read(q *query) ([]Object, error) {
	if !q.lists() {
		obj, found := c.store.get(q.key)
		if !found {
			return nil, nil
		}
		return []Object{obj}, nil
	}
	objs, rest, err := c.narrow(q)
	if err != nil || !rest {
		return objs, err
	}
	return slices.DeleteFunc(objs, func(obj Object) bool { return !c.matches(q, obj) }), nil
}

// narrow reads what may match, by the first index that helps. rest says that not all of it does.
func (c *cache) narrow(q *query) (objs []Object, rest bool, err error) {
	for _, field := range slices.Sorted(maps.Keys(q.Fields)) {
		if field == fieldName || field == fieldNamespace {
			continue
		}
		if c.index(field) == nil {
			return nil, false, fmt.Errorf("list %s by %s from the cache: %w", c.kind.gvk.Kind, field, ErrNoIndex)
		}
	}
	for field, value := range q.Fields {
		if c.index(field) == nil {
			continue
		}
		objs, err = c.store.byIndex(field, value)
		return objs, q.key.Namespace != "" || q.Labels != nil || len(q.Fields) > 1, err
	}
	return c.store.list(q.key.Namespace, q.Labels), len(q.Fields) > 0, nil
}
