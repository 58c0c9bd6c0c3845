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

// Caches are the caches of one client.
type Caches struct {
	factory *informer.Factory // nil if the client has no caches
	server  *live.Server
	// restrict returns the options of the cache of a kind.
	restrict func(k kinds.Kind, namespaced bool) informer.InformerOptions
	uncached []kinds.Kind

	mu   sync.Mutex
	made map[kinds.Kind]*Cache
	// pending are the indexes of caches that are not made yet.
	pending map[kinds.Kind][]pendingIndex
}

type pendingIndex struct {
	field   string
	extract func(informer.Object) []string
}

// New returns caches for all kinds of a server except uncached. restrict returns the options of the cache of a kind.
func New(factory *informer.Factory, server *live.Server,
	restrict func(k kinds.Kind, namespaced bool) informer.InformerOptions, uncached []kinds.Kind,
) *Caches {
	return &Caches{
		factory: factory, server: server, restrict: restrict, uncached: uncached,
		made: map[kinds.Kind]*Cache{}, pending: map[kinds.Kind][]pendingIndex{},
	}
}

var errNotCached = errors.New("the kind is not cached")

// caches reports whether the kind has a cache, or gets one with the first read.
func (cs *Caches) caches(k kinds.Kind) bool {
	return cs.factory != nil && !slices.Contains(cs.uncached, k)
}

// Index adds an index to the cache of a kind, now or when the cache is made. So it needs neither the server nor the
// definition of the kind.
func (cs *Caches) Index(k kinds.Kind, field string, extract func(informer.Object) []string) error {
	if !cs.caches(k) {
		return fmt.Errorf("index %s of %s: %w", field, k.GVK.Kind, errNotCached)
	}
	cs.mu.Lock()
	c := cs.made[k]
	if c == nil {
		defer cs.mu.Unlock()
		if slices.ContainsFunc(cs.pending[k], func(i pendingIndex) bool { return i.field == field }) {
			return fmt.Errorf("index %s of %s: %w", field, k.GVK.Kind, informer.ErrIndexExists)
		}
		cs.pending[k] = append(cs.pending[k], pendingIndex{field, extract})
		return nil
	}
	cs.mu.Unlock() // Creating an index calls extract, which is user code.
	if err := c.prepare(); err != nil {
		return err
	}
	return c.createIndex(field, extract)
}

// Of returns the cache of a kind. The first call makes it. Of returns nil if the kind is not cached.
func (cs *Caches) Of(ctx context.Context, k kinds.Kind) (*Cache, error) {
	if !cs.caches(k) {
		return nil, nil
	}
	cs.mu.Lock()
	c := cs.made[k]
	cs.mu.Unlock()
	if c == nil {
		r, err := cs.server.ResourceOf(ctx, k.GVK)
		if err != nil {
			return nil, err
		}
		if c, err = cs.ensure(k, r); err != nil {
			return nil, err
		}
	}
	return c, c.prepare()
}

// ensure makes the cache of a kind, unless a concurrent call has made it.
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
	pending := cs.pending[k]
	delete(cs.pending, k)
	c.prepare = sync.OnceValue(func() error {
		for _, i := range pending {
			if err := c.createIndex(i.field, i.extract); err != nil {
				return err
			}
		}
		return nil
	})
	cs.made[k] = c
	c.Writes.Join(c)
	return c, nil
}

// Drop removes the cache of a kind with its indexes, and releases its informer. Reads that are under way still use it.
func (cs *Caches) Drop(k kinds.Kind) {
	cs.mu.Lock()
	c := cs.made[k]
	delete(cs.made, k)
	delete(cs.pending, k)
	cs.mu.Unlock()
	if c != nil {
		informer.Release(c.informer)
		c.Writes.Leave(c)
	}
}

func (cs *Caches) make(k kinds.Kind, r live.Resource) (*Cache, error) {
	o := cs.restrict(k, r.Namespaced)
	o.Kind, o.ClusterScoped = k.GVK, !r.Namespaced
	c := &Cache{
		Kind: k, Writes: cs.server.Record.Resource(r.GroupResource()), namespaces: o.Namespaces,
		scheme: cs.server.Scheme, indexes: map[string]func(informer.Object) []string{},
	}
	var err error
	if c.labels, err = labels.Parse(o.LabelSelector); err != nil {
		return nil, err
	}
	if c.fields, err = fields.ParseSelector(o.FieldSelector); err != nil {
		return nil, err
	}
	if o.Namespaces == nil && r.Namespaced {
		c.namespaces = cs.factory.Options().Namespaces
	}
	for _, transform := range []func(informer.Object) (informer.Object, error){
		cs.factory.Options().Transform, o.Transform,
	} {
		if transform != nil {
			c.transforms = append(c.transforms, transform)
		}
	}
	var form informer.Object
	switch k.Form {
	case kinds.Unstructured:
		form = &unstructured.Unstructured{}
	case kinds.Metadata:
		form = &metav1.PartialObjectMetadata{}
	}
	c.informer, err = informer.ForKind(cs.factory, form, o)
	return c, err
}
