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
	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes"
)

// Cache is what the client knows about one informer.
type Cache struct {
	store
	Kind kinds.Kind
	// Writes are the own writes of the resource.
	Writes *writes.Resource
	// Namespaces are those it follows, nil all.
	Namespaces []string

	scheme     *runtime.Scheme
	transforms []func(informer.Object) (informer.Object, error)
	// labels and fields are what it selects.
	labels labels.Selector
	fields fields.Selector

	mu      sync.RWMutex
	indexes map[string]func(informer.Object) []string

	// marks guards highest. It may be taken while the lock of Writes is held; no user's code runs under it.
	marks sync.Mutex
	// highest is the highest watermark seen of each namespace that has one of its own, "" when all have the same: one
	// that falls below it tells that the server's history went back.
	highest map[string]string

	// prepare makes the indexes that were asked for before the cache was made. It runs once; who comes meanwhile waits.
	prepare func() error
}

// Track joins the cache of an informer that is read without the client, in every namespace.
func Track[T informer.Object](l *writes.Resource, inf informer.Informer[T]) {
	l.Join(&Cache{store: stored[T]{inf}, Writes: l, highest: map[string]string{}})
}

// Takes implements [writes.Cache].
func (c *Cache) Takes(namespace string) bool {
	return namespace == "" || len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, namespace)
}

// WentBack implements [writes.Cache].
func (c *Cache) WentBack() (back bool) {
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	c.marks.Lock()
	defer c.marks.Unlock()
	for _, namespace := range namespaces {
		mark := c.Watermark(namespace)
		back = back || versions.Earlier(mark, c.highest[namespace])
		c.highest[namespace] = mark
	}
	return back
}

// WaitForSync waits until the first list is in the cache.
//
// Errors: [informer.ErrForbidden] when the server refuses the list.
func (c *Cache) WaitForSync(ctx context.Context) error {
	if err := c.waitForSync(ctx); err != nil {
		return fmt.Errorf("fill the cache of %s: %w", c.Writes.Name, err)
	}
	return nil
}

// holds reports whether obj is one that the cache would hold.
func (c *Cache) holds(obj informer.Object) bool {
	if !c.Takes(obj.GetNamespace()) || !c.labels.Matches(labels.Set(obj.GetLabels())) {
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

// Decode returns an object that is sent or answered, in the form of the cache.
func (c *Cache) Decode(contentType string, body []byte) (informer.Object, error) {
	return c.Kind.Decode(c.scheme, contentType, body)
}

// Hold returns an object that the server answered as the cache would hold it: transformed, without what it strips.
func (c *Cache) Hold(contentType string, body []byte) (informer.Object, error) {
	obj, err := c.Decode(contentType, body)
	if err != nil {
		return nil, err
	}
	return c.Transform(obj)
}

// Transform returns an object of the server as the cache would hold it. It may change obj.
func (c *Cache) Transform(obj informer.Object) (_ informer.Object, err error) {
	for _, transform := range c.transforms {
		if obj, err = transform(obj); err != nil {
			return nil, fmt.Errorf("transform %s: %w", c.Kind.GVK.Kind, err)
		}
	}
	return obj, nil
}

func (c *Cache) index(field string) func(informer.Object) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.indexes[field]
}

// makeIndex makes an index, unless there is one of that name.
func (c *Cache) makeIndex(field string, extract func(informer.Object) []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexes[field] != nil {
		return fmt.Errorf("index %s of %s: %w", field, c.Kind.GVK.Kind, informer.ErrIndexExists)
	}
	err := c.addIndex(field, func(obj informer.Object) ([]string, error) { return extract(obj), nil })
	if err == nil {
		c.indexes[field] = extract
	}
	return err
}
