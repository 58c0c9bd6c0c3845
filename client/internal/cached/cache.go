package cached

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes"
)

// Cache is one informer with the options and indexes that the client gave it. It implements [writes.Cache].
type Cache struct {
	followed[informer.Object]
	Kind kinds.Kind
	// Writes are the own writes of the resource.
	Writes *writes.Resource

	scheme     *runtime.Scheme
	namespaces []string // nil means all
	labels     labels.Selector
	fields     fields.Selector
	transforms []func(informer.Object) (informer.Object, error)

	mu      sync.RWMutex
	indexes map[string]func(informer.Object) []string
	// prepare adds the indexes that were asked for before the cache was made. It runs once; later callers wait for it.
	prepare func() error
}

// Namespaces returns the namespaces whose objects the cache holds; nil means all.
func (c *Cache) Namespaces() []string { return c.namespaces }

// WaitForSync waits until the first list is in the cache.
//
// Errors: [informer.ErrForbidden] if the server refuses the list.
func (c *Cache) WaitForSync(ctx context.Context) error {
	if c.informer.HasSynced() {
		return nil
	}
	if err := c.informer.WaitForSyncFailFast(ctx); err != nil {
		return fmt.Errorf("fill the cache of %s: %w", c.Writes.Name, err)
	}
	return nil
}

// selects reports whether the cache would hold obj.
func (c *Cache) selects(obj informer.Object) bool {
	in := obj.GetNamespace()
	if in != "" && len(c.namespaces) > 0 && !slices.Contains(c.namespaces, in) ||
		!c.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if c.fields.Empty() {
		return true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return true
	}
	return wire.Selects(c.fields, content)
}

// Decode decodes the body of a request or an answer into the Go form of the cache's objects.
func (c *Cache) Decode(contentType string, body []byte) (informer.Object, error) {
	return c.Kind.Decode(c.scheme, contentType, body)
}

// View returns the object of an own write in the form in which the cache would hold it. Transforms are the user's code
// and run without a lock, so two readers at the same time may both call them.
func (c *Cache) View(e *writes.Entry) (informer.Object, error) {
	if obj := e.View(c); obj != nil {
		return obj, nil
	}
	obj, err := c.Decode(e.ContentType, e.Body)
	if err != nil {
		return nil, err
	}
	if obj, err = c.Transform(obj); err != nil {
		return nil, err
	}
	return e.SetView(c, obj), nil
}

// Transform applies the transforms of the cache to an object of the server. It may change obj.
func (c *Cache) Transform(obj informer.Object) (_ informer.Object, err error) {
	for _, transform := range c.transforms {
		if obj, err = transform(obj); err != nil {
			return nil, fmt.Errorf("transform %s: %w", c.Kind.GVK.Kind, err)
		}
	}
	return obj, nil
}

// index returns the function of the index on a field; nil if there is no such index.
func (c *Cache) index(field string) func(informer.Object) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.indexes[field]
}

// createIndex adds an index on a field.
//
// Errors: [informer.ErrIndexExists].
func (c *Cache) createIndex(field string, extract func(informer.Object) []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexes[field] != nil {
		return fmt.Errorf("index %s of %s: %w", field, c.Kind.GVK.Kind, informer.ErrIndexExists)
	}
	err := c.informer.AddIndex(field, func(obj informer.Object) ([]string, error) { return extract(obj), nil })
	if err == nil {
		c.indexes[field] = extract
	}
	return err
}
