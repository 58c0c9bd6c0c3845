package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/internal/discovered"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/informer/reflector"
	"github.com/flyball-dev/flyball/internal/plural"
	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/internal/wire"
)

// FactoryOptions configure a [Factory]. The zero value works.
type FactoryOptions struct {
	// Scheme maps Go types to kinds. nil means the scheme of client-go, which knows the built-in API types.
	Scheme *runtime.Scheme
	// Mapper maps kinds to resources. nil means the server's discovery, which is asked when an informer first lists. A
	// call of Mapper may outlast Run.
	Mapper meta.RESTMapper
	// Namespaces restricts the informers of namespaced resources; empty means all namespaces.
	Namespaces []string
	// Transform is applied to every object of every informer; see [reflector.Options].
	Transform func(objects.Object) (objects.Object, error)
	// StandardDecoding is as in [listwatch.RESTOptions], for every informer.
	StandardDecoding bool
	// Resync is the default of [handler.Options].Resync; 0 means none.
	Resync time.Duration
	// StreamLists, Backoff and Panics are as in [Options], for every informer.
	StreamLists bool
	Backoff     reflector.Backoff
	Panics      handler.PanicPolicy
	// OnError is called for every failed list and watch; see [reflector.Options].
	OnError func(ctx context.Context, err error)
}

// InformerOptions select an informer of a [Factory]. The zero value means all objects of the type.
type InformerOptions struct {
	// Kind is required for *unstructured.Unstructured, *metav1.PartialObjectMetadata and Object, which can hold any
	// kind.
	Kind schema.GroupVersionKind
	// Namespaces restricts the informer; nil means the factory's namespaces.
	Namespaces []string
	// ClusterScoped means that the resource has no namespaces. Then the Namespaces of the factory do not apply.
	ClusterScoped bool
	// LabelSelector, FieldSelector and ShardSelector are evaluated by the server.
	LabelSelector, FieldSelector, ShardSelector string
	// Transform is applied to every object after the factory's. It requires TransformName: functions cannot be
	// compared, so informers with the same name share a cache, which uses the first one's function.
	Transform     func(objects.Object) (objects.Object, error)
	TransformName string
	// StandardDecoding is as in [listwatch.RESTOptions].
	StandardDecoding bool
}

// Factory shares informers: all callers that ask for the same objects in the same representation get one cache and one
// connection.
//
// Concurrency: all methods and [For] may be called at any time. An informer that is asked for while the factory runs
// starts at once.
type Factory struct {
	o         FactoryOptions
	client    rest.Interface
	server    *connection.Server
	resources *discovered.Resources

	mu sync.Mutex
	// caches has the caches in use, in order of creation. Only setCachesLocked changes it.
	caches  []*cache
	running bool
	done    bool
	// started is nil unless Start runs the factory.
	started *background
	// added gets a token for Run when a cache was added. Capacity 1, never closed.
	added chan struct{}

	// published has the elements of caches, for Caches to read without the lock. The slice is replaced, never changed.
	published atomic.Pointer[[]Cache]
}

// engine is the pipeline of one cache: a [SharedInformer] of objects.
//
// It is an interface so that importers compile fast. A package that mentions a type compiles all methods of every
// instantiated generic type that this type reaches through its fields and method signatures. Nearly every program
// mentions [Factory], and none of them should compile the pipeline again. See docs/decisions/0010-light-types.md.
type engine interface {
	Informer[objects.Object]
	Run(ctx context.Context) error
	rebuilds() int64
	observe(f func(shown iter.Seq[objects.Object])) (stop func())
	relist(namespace string, why func() error)
}

// cache is one informer of a factory. It implements [Cache].
type cache struct {
	engine
	identity  cacheIdentity
	selection InformerOptions
	// resource is a guess; discovered returns the resource once it is known.
	resource   schema.GroupResource
	discovered func() (schema.GroupResource, bool)
	// users counts the callers of For that have not released the cache. The factory's mu guards users and stop.
	users int
	// stop ends the informer's Run; nil before Run.
	stop context.CancelFunc
}

// NewFactory returns a factory for the server in config. It sends no request before Run.
func NewFactory(config *rest.Config, o FactoryOptions) (*Factory, error) {
	if config == nil {
		return nil, errors.New("informer factory: the config is nil: it names the cluster to watch")
	}
	o.Scheme = cmp.Or(o.Scheme, clientscheme.Scheme)
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = wire.ErrorCodecs()
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	config.Wrap(redirect.Refuse)
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("informer factory: %w", err)
	}
	f := &Factory{
		o: o, client: client, resources: discovered.NewResources(client, o.Mapper), added: make(chan struct{}, 1),
	}
	f.setCachesLocked(nil)
	f.server = connection.NewServer(
		func(ctx context.Context) (string, error) { return connection.Identity(ctx, client) },
	)
	return f, nil
}

// Options returns the options that the factory was made with, and its scheme.
func (f *Factory) Options() FactoryOptions { return f.o }

// ResourceOf returns the resource of a kind, from FactoryOptions.Mapper or from the server's discovery. The informers
// and their clients use the same answers, which are remembered until the server does not serve the resource any more.
//
// Errors: [listwatch.UnknownKindError]; those of the request, which is not repeated; those of the mapper.
func (f *Factory) ResourceOf(ctx context.Context, kind schema.GroupVersionKind) (
	resource schema.GroupVersionResource, namespaced bool, err error,
) {
	r, err := f.resources.Of(ctx, kind)
	return r.GroupVersionResource, r.Namespaced, err
}

// Reach asks the server which cluster it belongs to. The informers ask the same before their first list, and not again
// if Reach has got an answer. A refusal is an answer, too.
//
// Errors: those of the request.
func (f *Factory) Reach(ctx context.Context) error { return f.server.Verify(ctx) }

// For returns the informer of all objects of type T, which the factory's scheme must know.
//
// The informer is shared. If you no longer need it while the factory runs on, give it back with [Release].
//
// Errors: if the scheme does not know T; [ErrStopped] after the factory's Run.
func For[T objects.Object](f *Factory) (Informer[T], error) {
	return ForOptions[T](f, InformerOptions{})
}

// ForOptions returns the informer of the objects of type T that o selects. If T is *unstructured.Unstructured or
// *metav1.PartialObjectMetadata, the informer has a cache of its own; a cache of metadata is far smaller. If T is
// Object, it shares the cache of the Go type.
//
// Errors: as for [For].
func ForOptions[T objects.Object](f *Factory, o InformerOptions) (Informer[T], error) {
	var example any // Stays nil when T is the interface.
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Pointer {
		example = reflect.New(t.Elem()).Interface()
	}
	return viewOf[T](f, example, o)
}

// ForKind returns the informer of the objects of o.Kind that o selects, for callers that learn the kind at run time. If
// example is an *unstructured.Unstructured or a *metav1.PartialObjectMetadata, the objects are, too, as for
// [ForOptions]. Any other example stands for the Go type that the scheme has for the kind.
//
// Errors: as for [For].
func ForKind(f *Factory, example objects.Object, o InformerOptions) (Informer[objects.Object], error) {
	switch example.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return viewOf[objects.Object](f, example, o)
	}
	return viewOf[objects.Object](f, nil, o)
}

// Release gives back an informer that [For] or [ForOptions] returned. It removes the handlers that were added through
// it, and drops their pending changes. If it was the last user of the cache, the informer stops; its memory is freed
// with the last reference to the value that For returned. Releasing twice does nothing.
func Release[T objects.Object](inf Informer[T]) {
	if v, ok := inf.(*view[T]); ok {
		v.release()
	}
}

// shared returns the cache with that identity, and creates it if needed.
func (f *Factory) shared(id cacheIdentity, newObject func() objects.Object, o InformerOptions) (*cache, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.caches {
		if c.identity == id {
			c.users++
			return c, nil
		}
	}
	if f.done {
		return nil, fmt.Errorf("informer of %s: %w", id.Kind, handler.ErrStopped)
	}
	c := &cache{
		identity: id, selection: id.selection(), users: 1,
		resource: schema.GroupResource{Group: id.Kind.Group, Resource: plural.Of(id.Kind.Kind)},
	}
	lws := map[string]listwatch.ListerWatcher[objects.Object]{}
	for namespace := range strings.SplitSeq(id.Namespaces, ",") {
		lw := discovered.New(f.client, f.resources, id.Kind, listwatch.RESTOptions{
			Kind: id.Kind.Kind, Namespace: namespace, New: newObject,
			LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, ShardSelector: o.ShardSelector,
			StandardDecoding: id.standard,
		})
		lws[namespace] = lw
		c.discovered = lw.Resource // Each namespace discovers the same.
	}
	c.engine = NewSharedInformerOfNamespaces(lws, Options[objects.Object]{
		Resource: c.Resource(), Transform: chain(f.o.Transform, o.Transform),
		StreamLists: f.o.StreamLists, Backoff: f.o.Backoff, Panics: f.o.Panics, OnError: f.o.OnError,
		Server: f,
	})
	f.setCachesLocked(append(f.caches, c))
	select {
	case f.added <- struct{}{}:
	default:
	}
	return c, nil
}

// chain returns a transform that applies first, then second. Either may be nil.
func chain(first, second func(objects.Object) (objects.Object, error)) func(objects.Object) (objects.Object, error) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(obj objects.Object) (objects.Object, error) {
		obj, err := first(obj)
		if err != nil {
			return nil, err
		}
		return second(obj)
	}
}

// giveBack removes a user of a cache, and stops its informer if it was the last.
func (f *Factory) giveBack(c *cache) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.users--; c.users > 0 {
		return
	}
	f.setCachesLocked(slices.DeleteFunc(f.caches, func(other *cache) bool { return other == c }))
	if c.stop != nil {
		c.stop()
	}
}

// Run runs all informers until ctx is done, including those asked for meanwhile. It returns when all have ended.
//
// Errors: if called twice, or after Start.
func (f *Factory) Run(ctx context.Context) error {
	f.mu.Lock()
	again := f.running
	f.running = true
	f.mu.Unlock()
	if again {
		return errors.New("informer factory: Run called twice")
	}
	f.run(ctx)
	return nil
}

// begun reports whether Run or Start was called.
func (f *Factory) begun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

// run is the body of Run and Start. The caller has set running.
func (f *Factory) run(ctx context.Context) {
	var informers sync.WaitGroup
	for ctx.Err() == nil {
		f.start(ctx, &informers)
		select {
		case <-f.added:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	f.done = true
	f.mu.Unlock()
	f.start(ctx, &informers) // Informers that were added last end at once; their users would otherwise wait for ever.
	informers.Wait()
}

// start runs the informers that do not run yet. Run waits for them.
func (f *Factory) start(ctx context.Context, informers *sync.WaitGroup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.caches {
		if c.stop != nil {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		c.stop = stop
		informers.Go(func() {
			defer stop()
			_ = c.Run(ctx) // It fails only if it ran before.
		})
	}
}

// WaitForSync waits until every existing informer has synced.
//
// Errors: if ctx ends first, the joined errors of the informers that have not synced.
func (f *Factory) WaitForSync(ctx context.Context) error {
	var errs []error
	for _, c := range f.all() {
		errs = append(errs, c.WaitForSync(ctx))
	}
	return errors.Join(errs...)
}

// Health returns the health of each informer, in order of creation.
func (f *Factory) Health() []Health {
	caches := f.all()
	health := make([]Health, 0, len(caches))
	for _, c := range caches {
		health = append(health, c.Health())
	}
	return health
}

// Stats returns the counters of each informer by resource. If a cache is restricted or has a form of its own, its name
// shows that: "pods (metadata, app=web)".
func (f *Factory) Stats() map[string]Stats {
	stats, caches := map[string]Stats{}, f.all()
	for _, c := range caches {
		stats[f.name(c, caches)] = c.Stats()
	}
	return stats
}

func (f *Factory) all() []*cache {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.caches)
}
