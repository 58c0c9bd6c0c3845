package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// CacheOf says which objects of a kind the cache holds.
type CacheOf struct {
	// Object says the kind, and whether typed, unstructured or metadata: each has its cache.
	Object Object
	// Informer restricts it; its Kind is filled in.
	Informer informer.InformerOptions
}

// cache is what the client knows about one informer.
type cache struct {
	kind       kind
	scheme     *runtime.Scheme
	store      store
	writes     *ownwrites.Resource
	transforms []func(Object) (Object, error)
	// namespaces are those it follows, nil all. labels and fields are what it selects, nil everything.
	namespaces []string
	labels     labels.Selector
	fields     fields.Selector

	mu      sync.RWMutex
	indexes map[string]func(Object) []string

	// marks guards what follows. It may be taken while the lock of writes is held; no user's code runs under it.
	marks sync.Mutex
	// highest is the highest watermark seen of each namespace that has one of its own, "" when all have the same: one
	// that falls below it tells that the server's history went back.
	highest map[string]string
	// reached is the last minimum version that the cache was found to have reached.
	reached string

	// prepare makes the indexes that were asked for before the cache was made. It runs once; who comes meanwhile waits.
	prepare func() error
}

// Follows implements [ownwrites.Cache].
func (c *cache) Follows(namespace string) bool {
	return namespace == "" || len(c.namespaces) == 0 || slices.Contains(c.namespaces, namespace)
}

// Get implements [ownwrites.Cache].
func (c *cache) Get(key ObjectKey) (Object, bool) { return c.store.get(key) }

// Watermark implements [ownwrites.Cache].
func (c *cache) Watermark(namespace string) string { return c.store.watermark(namespace) }

// History implements [ownwrites.Cache].
func (c *cache) History(namespace string) int64 { return c.store.history(namespace) }

// holds says whether obj is one that the cache would hold.
func (c *cache) holds(obj Object) bool {
	if !c.Follows(obj.GetNamespace()) || (c.labels != nil && !c.labels.Matches(labels.Set(obj.GetLabels()))) {
		return false
	}
	if c.fields == nil {
		return true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return true
	}
	return ownwrites.Selects(c.fields, content)
}

func (c *cache) index(field string) func(Object) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.indexes[field]
}

// addIndex makes an index, unless there is one of that name.
func (c *cache) addIndex(field string, extract func(Object) []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexes[field] != nil {
		return fmt.Errorf("index %s of %s: %w", field, c.kind.gvk.Kind, informer.ErrIndexExists)
	}
	err := c.store.addIndex(field, func(obj Object) ([]string, error) { return extract(obj), nil })
	if err == nil {
		c.indexes[field] = extract
	}
	return err
}

// WentBack implements [ownwrites.Cache].
func (c *cache) WentBack() (back bool) {
	namespaces := c.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	c.marks.Lock()
	defer c.marks.Unlock()
	for _, namespace := range namespaces {
		mark := c.store.watermark(namespace)
		back = back || ownwrites.Earlier(mark, c.highest[namespace])
		c.highest[namespace] = mark
	}
	return back
}

// caches are those of one client.
type caches struct {
	factory *informer.Factory // nil: there are none
	scheme  *runtime.Scheme
	record  *ownwrites.Record
	mapper  *mapper
	given   []CacheOf
	// other is for kinds that given does not mention; nil leaves them whole.
	other func(kind schema.GroupVersionKind, namespaced bool) informer.InformerOptions
	live  []kind

	mu   sync.Mutex
	made map[kind]*cache
	// wanted are the indexes of caches that are not made yet.
	wanted map[kind][]wantedIndex
}

// wantedIndex is an index to be made.
type wantedIndex struct {
	field   string
	extract func(Object) []string
}

var errNotCached = errors.New("the kind is not cached")

// index makes an index of a cache, or remembers to when the cache is made: neither the server nor the kind's
// definition needs to be there before.
func (cs *caches) index(k kind, field string, extract func(Object) []string) error {
	if cs.factory == nil || slices.Contains(cs.live, k) {
		return fmt.Errorf("index %s of %s: %w", field, k.gvk.Kind, errNotCached)
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.made[k]; c != nil {
		cs.mu.Unlock() // It calls extract.
		defer cs.mu.Lock()
		if err := c.prepare(); err != nil {
			return err
		}
		return c.addIndex(field, extract)
	}
	for _, other := range cs.wanted[k] {
		if other.field == field {
			return fmt.Errorf("index %s of %s: %w", field, k.gvk.Kind, informer.ErrIndexExists)
		}
	}
	cs.wanted[k] = append(cs.wanted[k], wantedIndex{field, extract})
	return nil
}

// of returns the cache of a kind, and makes it when it is asked for the first time; nil when the kind is not cached.
func (cs *caches) of(ctx context.Context, k kind) (*cache, error) {
	if cs.factory == nil || slices.Contains(cs.live, k) {
		return nil, nil
	}
	cs.mu.Lock()
	c := cs.made[k]
	cs.mu.Unlock()
	if c == nil {
		r, err := cs.mapper.resourceOf(ctx, k.gvk)
		if err != nil {
			return nil, err
		}
		if c, err = cs.ensure(k, r); err != nil {
			return nil, err
		}
	}
	return c, c.prepare()
}

// ensure makes the cache of a kind, unless somebody has meanwhile.
func (cs *caches) ensure(k kind, r resource) (*cache, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.made[k]; c != nil {
		return c, nil
	}
	c, err := cs.make(k, r)
	if err != nil {
		return nil, err
	}
	wanted := cs.wanted[k]
	delete(cs.wanted, k)
	c.prepare = sync.OnceValue(func() error {
		for _, i := range wanted {
			if err := c.addIndex(i.field, i.extract); err != nil {
				return err
			}
		}
		return nil
	})
	cs.made[k] = c
	c.writes.Join(c)
	return c, nil
}

// drop forgets the cache of a kind, and the indexes that it was to have, and gives its informer back. Reads that are
// under way end as they began.
func (cs *caches) drop(k kind) {
	cs.mu.Lock()
	c := cs.made[k]
	delete(cs.made, k)
	delete(cs.wanted, k)
	cs.mu.Unlock()
	if c == nil {
		return
	}
	c.writes.Leave(c)
	c.store.release()
}

func (cs *caches) make(k kind, r resource) (*cache, error) {
	o := informer.InformerOptions{}
	if cs.other != nil {
		o = cs.other(k.gvk, r.namespaced)
	}
	for _, g := range cs.given {
		if of, err := kindOf(cs.scheme, g.Object); err == nil && of == k {
			o = g.Informer
		}
	}
	o.Kind, o.ClusterScoped = k.gvk, !r.namespaced
	c := &cache{
		kind: k, scheme: cs.scheme, writes: cs.record.Of(r.GroupResource()),
		indexes: map[string]func(Object) []string{}, highest: map[string]string{},
	}
	var err error
	if o.LabelSelector != "" {
		if c.labels, err = labels.Parse(o.LabelSelector); err != nil {
			return nil, err
		}
	}
	if o.FieldSelector != "" {
		if c.fields, err = fields.ParseSelector(o.FieldSelector); err != nil {
			return nil, err
		}
	}
	if c.namespaces = o.Namespaces; c.namespaces == nil && r.namespaced {
		c.namespaces = cs.factory.Options().Namespaces
	}
	for _, transform := range []func(Object) (Object, error){cs.factory.Options().Transform, o.Transform} {
		if transform != nil {
			c.transforms = append(c.transforms, transform)
		}
	}
	switch k.form {
	case formUnstructured:
		c.store, err = storeOf[*unstructured.Unstructured](cs.factory, o)
	case formMetadata:
		c.store, err = storeOf[*metav1.PartialObjectMetadata](cs.factory, o)
	default:
		c.store, err = storeOf[Object](cs.factory, o)
	}
	return c, err
}

func storeOf[T Object](f *informer.Factory, o informer.InformerOptions) (store, error) {
	inf, err := informer.ForOptions[T](f, o)
	if err != nil {
		return nil, err
	}
	return stored[T]{inf}, nil
}
