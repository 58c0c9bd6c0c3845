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
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// Options configure a [Cluster]. The zero value reads everything from the server.
type Options struct {
	// Informers are the caches to read from. They are run by whoever owns them. Nil: every read is live.
	Informers *informer.Factory
	// Scheme tells the kinds of Go types; nil is that of Informers, or client-go's.
	Scheme *runtime.Scheme
	// Mapper tells the resources of kinds; nil asks the server, one group and version at a time.
	Mapper meta.RESTMapper
	// Caches restricts what is cached of some kinds. Kinds not mentioned are cached whole.
	Caches []CacheOf
	// CacheFor restricts what is cached of the kinds that Caches does not mention; nil does not. It must always say
	// the same.
	CacheFor func(kind schema.GroupVersionKind, namespaced bool) informer.InformerOptions
	// Uncached are kinds that are always read live, in the representation of these objects.
	Uncached []Object
	// FieldManager owns the fields that are written, where the call does not say; "" leaves it to the server.
	FieldManager string
	// DryRun makes every write one with [DryRunAll].
	DryRun bool
	// StaleAfter is how long a read waits for an own write; zero means a second.
	StaleAfter time.Duration
	// RequestTimeout is how long the server may work on a request whose answer was lost; zero means a minute, the
	// kube-apiserver's --request-timeout.
	RequestTimeout time.Duration
}

// CacheOf says which objects of a kind the cache holds.
type CacheOf struct {
	// Object says the kind, and whether typed, unstructured or metadata: each has its cache.
	Object Object
	// Informer restricts it; its Kind is filled in.
	Informer informer.InformerOptions
}

// Cluster is a [Client] of one cluster. See the package comment for what it promises.
//
// Concurrency: all methods may be called at any time. One that is shared by a whole process keeps the promise for
// the whole process; two of them know nothing of each other's writes.
type Cluster struct {
	o Options
	// server gets the live reads and all writes, and its Record notes the writes.
	server *live.Server
	caches *cached.Caches
	waits  waits
}

var _ Client = (*Cluster)(nil)

// errNoConfig: nobody knows which cluster is meant.
var errNoConfig = errors.New(
	"the config is nil: GetConfig of manager/ctrl makes one of a kubeconfig or of the Pod's service account",
)

// New returns a client of the cluster that config names. Nothing is asked of the server before the first call.
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
	server.Record.Connect(ownwrites.Peer{
		Caches: o.Informers, Server: server.REST, RequestTimeout: o.RequestTimeout,
	})
	return &Cluster{o: o, server: server, caches: cached.New(o.Informers, server, restrict, uncached)}, nil
}

// Through returns a client of the same caches and the same record of own writes, so that each sees what the other
// wrote, whose own requests are sent as config says: as another user, say.
func (c *Cluster) Through(config *rest.Config) (*Cluster, error) {
	if config == nil {
		return nil, fmt.Errorf("client through another configuration: %w", errNoConfig)
	}
	server, err := c.server.Through(config)
	if err != nil {
		return nil, fmt.Errorf("client through another configuration: %w", err)
	}
	return &Cluster{o: c.o, server: server, caches: c.caches}, nil
}

// Scheme implements [Client].
func (c *Cluster) Scheme() *runtime.Scheme { return c.o.Scheme }

// GroupVersionKindFor implements [Client].
func (c *Cluster) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	k, err := kinds.Of(c.o.Scheme, obj)
	return k.GVK, err
}

// IsObjectNamespaced reports whether objects of obj's kind live in namespaces.
func (c *Cluster) IsObjectNamespaced(ctx context.Context, obj runtime.Object) (bool, error) {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return false, err
	}
	r, err := c.server.Mapper.Of(ctx, k.GVK)
	return r.Namespaced, err
}

// IndexField makes cached lists of obj's kind, in obj's representation, selectable by [MatchingFields] with that
// field. extract returns the values of an object; it is called for objects of the cache, and for own writes that it
// has not seen. Nothing is asked of the server: the kind may be defined later. ctx is not used; it is there because
// people expect it.
//
// Errors: [informer.ErrIndexExists]; one that says so, when the kind is not cached.
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

// APIReader reads from the server always, never from a cache: before the caches run, say, or for what is read once.
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

// Cache makes the cache of obj's kind, in obj's representation, with the indexes that were asked for; the first
// read would. It is for callers that read the same informer without this client, by those indexes. A kind that is
// not cached stays so.
func (c *Cluster) Cache(ctx context.Context, obj Object) error {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err == nil {
		_, err = c.caches.Of(ctx, k)
	}
	return err
}

// Uncache drops the cache of obj's kind, in obj's representation, with its indexes. The next read makes it again.
func (c *Cluster) Uncache(obj Object) error {
	k, err := kinds.Of(c.o.Scheme, obj)
	if err == nil {
		c.caches.Drop(k)
	}
	return err
}
