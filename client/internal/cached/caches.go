package cached

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

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/live"
	"github.com/flyball-dev/flyball/informer"
)

// Caches are those of one client.
type Caches struct {
	factory *informer.Factory // nil: there are none
	server  *live.Server
	// restrict says what is cached of a kind.
	restrict func(k kinds.Kind, namespaced bool) informer.InformerOptions
	// uncached are the kinds that have no cache.
	uncached []kinds.Kind

	mu   sync.Mutex
	made map[kinds.Kind]*Cache
	// wanted are the indexes of caches that are not made yet.
	wanted map[kinds.Kind][]wantedIndex
}

// wantedIndex is an index to be made.
type wantedIndex struct {
	field   string
	extract func(informer.Object) []string
}

// New returns the caches of the kinds of a server but those uncached. restrict says what is cached of a kind.
func New(factory *informer.Factory, server *live.Server,
	restrict func(k kinds.Kind, namespaced bool) informer.InformerOptions, uncached []kinds.Kind,
) *Caches {
	return &Caches{
		factory: factory, server: server, restrict: restrict, uncached: uncached,
		made: map[kinds.Kind]*Cache{}, wanted: map[kinds.Kind][]wantedIndex{},
	}
}

var errNotCached = errors.New("the kind is not cached")

// has reports whether there is a cache of the kind, or may be one.
func (cs *Caches) has(k kinds.Kind) bool {
	return cs.factory != nil && !slices.Contains(cs.uncached, k)
}

// Index makes an index of a cache, or remembers to when the cache is made: neither the server nor the kind's
// definition needs to be there before.
func (cs *Caches) Index(k kinds.Kind, field string, extract func(informer.Object) []string) error {
	if !cs.has(k) {
		return fmt.Errorf("index %s of %s: %w", field, k.GVK.Kind, errNotCached)
	}
	cs.mu.Lock()
	c := cs.made[k]
	if c == nil {
		defer cs.mu.Unlock()
		for _, other := range cs.wanted[k] {
			if other.field == field {
				return fmt.Errorf("index %s of %s: %w", field, k.GVK.Kind, informer.ErrIndexExists)
			}
		}
		cs.wanted[k] = append(cs.wanted[k], wantedIndex{field, extract})
		return nil
	}
	cs.mu.Unlock() // What follows calls extract.
	if err := c.prepare(); err != nil {
		return err
	}
	return c.makeIndex(field, extract)
}

// Of returns the cache of a kind, and makes it when it is asked for the first time; nil when the kind is not cached.
func (cs *Caches) Of(ctx context.Context, k kinds.Kind) (*Cache, error) {
	if !cs.has(k) {
		return nil, nil
	}
	cs.mu.Lock()
	c := cs.made[k]
	cs.mu.Unlock()
	if c == nil {
		r, err := cs.server.Mapper.Of(ctx, k.GVK)
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
func (cs *Caches) ensure(k kinds.Kind, r live.Resource) (*Cache, error) {
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
			if err := c.makeIndex(i.field, i.extract); err != nil {
				return err
			}
		}
		return nil
	})
	cs.made[k] = c
	c.Writes.Join(c)
	return c, nil
}

// Drop forgets the cache of a kind, and the indexes that it was to have, and gives its informer back. Reads that are
// under way end as they began.
func (cs *Caches) Drop(k kinds.Kind) {
	cs.mu.Lock()
	c := cs.made[k]
	delete(cs.made, k)
	delete(cs.wanted, k)
	cs.mu.Unlock()
	if c != nil {
		c.Writes.Leave(c)
		c.release()
	}
}

func (cs *Caches) make(k kinds.Kind, r live.Resource) (*Cache, error) {
	o := cs.restrict(k, r.Namespaced)
	o.Kind, o.ClusterScoped = k.GVK, !r.Namespaced
	c := &Cache{
		Kind: k, Writes: cs.server.Record.Resource(r.GroupResource()), Namespaces: o.Namespaces,
		scheme:  cs.server.Scheme,
		indexes: map[string]func(informer.Object) []string{}, highest: map[string]string{},
	}
	var err error
	if c.labels, err = labels.Parse(o.LabelSelector); err != nil {
		return nil, err
	}
	if c.fields, err = fields.ParseSelector(o.FieldSelector); err != nil {
		return nil, err
	}
	if o.Namespaces == nil && r.Namespaced {
		c.Namespaces = cs.factory.Options().Namespaces
	}
	for _, transform := range []func(informer.Object) (informer.Object, error){
		cs.factory.Options().Transform, o.Transform,
	} {
		if transform != nil {
			c.transforms = append(c.transforms, transform)
		}
	}
	switch k.Form {
	case kinds.Unstructured:
		c.store, err = storeOf[*unstructured.Unstructured](cs.factory, o)
	case kinds.Metadata:
		c.store, err = storeOf[*metav1.PartialObjectMetadata](cs.factory, o)
	default:
		c.store, err = storeOf[informer.Object](cs.factory, o)
	}
	return c, err
}
