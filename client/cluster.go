package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/live"
	"github.com/flyball-dev/flyball/informer"
)

// Options configure a [Cluster]. The zero value reads everything from the server.
type Options struct {
	// Informers has the caches to read from. Its owner runs it. Nil means that every read goes to the server.
	Informers *informer.Factory
	// Scheme maps Go types to kinds. Nil means the scheme of Informers, or client-go's.
	Scheme *runtime.Scheme
	// Mapper maps kinds to resources. Nil means discovery, one group and version at a time.
	Mapper meta.RESTMapper
	// Caches restricts the caches of some kinds, each listed once. All objects of other kinds are cached.
	Caches []CacheOf
	// CacheFor restricts the caches of the kinds that are not in Caches; nil means no restriction. It must return the
	// same for the same arguments.
	CacheFor func(kind schema.GroupVersionKind, namespaced bool) informer.InformerOptions
	// Uncached are objects whose kinds, in the representation of the object, are always read from the server.
	Uncached []Object
	// FieldManager is the field manager of writes without one of their own. If it is empty the server chooses one.
	FieldManager string
	// DryRun adds [DryRunAll] to every write.
	DryRun bool
	// StaleAfter is how long a read waits for the cache to show an own write. Zero means a second.
	StaleAfter time.Duration
	// RequestTimeout is how long the server may go on with a request whose answer was lost. Zero means a minute, the
	// default of kube-apiserver's --request-timeout.
	RequestTimeout time.Duration
}

// CacheOf restricts the cache of one kind.
type CacheOf struct {
	// Object is an object of the kind. Typed objects, unstructured objects and metadata have separate caches.
	Object Object
	// Informer selects the objects in the cache. Its Kind is not used.
	Informer informer.InformerOptions
}

// Cluster is a [Client] of one cluster. See the package comment for what it promises.
//
// Concurrency: all methods may be called from any goroutine. The promise covers the writes of this Cluster only, so a
// process should share one.
type Cluster struct {
	o Options
	// server sends live reads and all writes. Its Record has the own writes.
	server *live.Server
	caches *cached.Caches
	// restricted has Options.Caches.
	restricted map[kinds.Kind]informer.InformerOptions
	waits      waits
}

var _ Client = (*Cluster)(nil)

var errNoConfig = errors.New(
	"the config is nil: GetConfig of manager/ctrl makes one of a kubeconfig or of the Pod's service account",
)

// New returns a client of the cluster of config. It sends no request before the first call.
func New(config *rest.Config, o Options) (*Cluster, error) {
	if config == nil {
		return nil, fmt.Errorf("new client: %w", errNoConfig)
	}
	if o.Scheme == nil {
		o.Scheme = clientscheme.Scheme
		if o.Informers != nil {
			o.Scheme = o.Informers.Options().Scheme
		}
	}
	o.StaleAfter = cmp.Or(max(o.StaleAfter, 0), time.Second)
	o.RequestTimeout = cmp.Or(max(o.RequestTimeout, 0), time.Minute)
	var uncached []kinds.Kind
	for _, obj := range o.Uncached {
		k, err := kinds.Of(o.Scheme, obj)
		if err != nil {
			return nil, fmt.Errorf("new client: uncached kinds: %w", err)
		}
		uncached = append(uncached, k)
	}
	given := map[kinds.Kind]informer.InformerOptions{}
	for i, of := range o.Caches {
		k, err := kinds.Of(o.Scheme, of.Object)
		if _, twice := given[k]; twice && err == nil {
			err = fmt.Errorf("%v is listed twice", k.GVK)
		}
		if err != nil {
			return nil, fmt.Errorf("new client: Options.Caches[%d]: %w", i, err)
		}
		given[k] = of.Informer
	}
	restrict := func(k kinds.Kind, namespaced bool) informer.InformerOptions {
		restricted, known := given[k]
		if !known && o.CacheFor != nil {
			return o.CacheFor(k.GVK, namespaced)
		}
		return restricted
	}
	server, err := live.New(config, o.Scheme, o.Mapper, o.Informers)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	server.Record.Connect(o.Informers, server.REST, o.RequestTimeout)
	caches := cached.New(o.Informers, server, restrict, uncached)
	return &Cluster{o: o, server: server, caches: caches, restricted: given}, nil
}

// Through returns a client that sends its requests with another config, for example as another user. It shares the
// caches and the record of own writes with c, so that each sees what the other wrote.
func (c *Cluster) Through(config *rest.Config) (*Cluster, error) {
	if config == nil {
		return nil, fmt.Errorf("client through another configuration: %w", errNoConfig)
	}
	server, err := c.server.Through(config)
	if err != nil {
		return nil, fmt.Errorf("client through another configuration: %w", err)
	}
	return &Cluster{o: c.o, server: server, caches: c.caches, restricted: c.restricted}, nil
}

// CacheOf returns the options that Options.Caches has for the kind and representation of example. It returns the zero
// value if there is no entry or the kind is unknown.
func (c *Cluster) CacheOf(example Object) informer.InformerOptions {
	k, err := kinds.Of(c.o.Scheme, example)
	if err != nil {
		return informer.InformerOptions{}
	}
	return c.restricted[k]
}

// Scheme implements [Client].
func (c *Cluster) Scheme() *runtime.Scheme { return c.o.Scheme }

// GroupVersionKindFor implements [Client].
func (c *Cluster) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	k, err := kinds.Of(c.o.Scheme, obj)
	return k.GVK, err
}

// IsObjectNamespaced reports whether the kind of obj is namespaced.
func (c *Cluster) IsObjectNamespaced(ctx context.Context, obj runtime.Object) (bool, error) {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return false, err
	}
	r, err := c.server.ResourceOf(ctx, k.GVK)
	return r.Namespaced, err
}

// IndexField adds an index to the cache of obj's kind, in obj's representation. Lists can then select by field with
// [MatchingFields]. extract returns the values of one object. It is called for objects of the cache, and for own writes
// that the cache does not show yet. IndexField sends no request: the kind may be defined later. ctx is not used; the
// method has it as in controller-runtime.
//
// Errors: [informer.ErrIndexExists]; an error if the kind is not cached.
func (c *Cluster) IndexField(_ context.Context, obj Object, field string, extract func(Object) []string) error {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return err
	}
	if field == "" || extract == nil {
		return fmt.Errorf("index field %q of %s: a field name and an index function are required",
			field, k.GVK.Kind)
	}
	return c.caches.Index(k, field, extract)
}

// APIReader returns a reader that always asks the server, for example before the caches run, or for objects that are
// read once.
func (c *Cluster) APIReader() Reader { return apiReader{c} }

type apiReader struct{ cluster *Cluster }

// Get implements [Reader].
func (r apiReader) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	return r.cluster.Get(ctx, key, obj, append(opts[:len(opts):len(opts)], Live)...)
}

// List implements [Reader].
func (r apiReader) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	return r.cluster.List(ctx, list, append(opts[:len(opts):len(opts)], Live)...)
}

// Cache creates the cache of obj's kind, in obj's representation, with the indexes of [Cluster.IndexField]. Without
// this call, the first read creates the cache. Cache is for callers that use these indexes on the informer itself. It
// does nothing for a kind that is not cached.
func (c *Cluster) Cache(ctx context.Context, obj Object) error {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err == nil {
		_, err = c.caches.Of(ctx, k)
	}
	return err
}

// Uncache drops the cache of obj's kind, in obj's representation, with its indexes. The next read creates it anew.
func (c *Cluster) Uncache(obj Object) error {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err == nil {
		c.caches.Drop(k)
	}
	return err
}
