package informer

import (
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/informer/reflector"
	"github.com/flyball-dev/flyball/internal/plural"
	"github.com/flyball-dev/flyball/internal/redirect"
)

// FactoryOptions configure a [Factory]. The zero value works.
type FactoryOptions struct {
	// Scheme tells the kinds of Go types; nil is that of client-go, which knows the built-in API types.
	Scheme *runtime.Scheme
	// Mapper tells the resources of kinds; nil asks the server's discovery, when an informer first lists. A call of
	// it may outlast Run.
	Mapper meta.RESTMapper
	// Namespaces restricts the informers of namespaced resources; none is all namespaces.
	Namespaces []string
	// Transform is applied to every object of every informer; see [reflector.Options].
	Transform func(objects.Object) (objects.Object, error)
	// StandardDecoding is as in [listwatch.RESTOptions], for every informer.
	StandardDecoding bool
	// Resync is HandlerOptions.Resync for handlers that do not say; 0 is none.
	Resync time.Duration
	// StreamLists, Backoff and Panics are as in [Options], for every informer.
	StreamLists bool
	Backoff     reflector.Backoff
	Panics      handler.PanicPolicy
	// OnError is told of every failure of a list or watch; see [reflector.Options].
	OnError func(ctx context.Context, err error)
}

// InformerOptions say which informer of a [Factory] is wanted. The zero value is all objects of the type.
type InformerOptions struct {
	// Kind is needed for *unstructured.Unstructured, *metav1.PartialObjectMetadata and Object, which do not say it.
	Kind schema.GroupVersionKind
	// Namespaces restricts it; nil means the factory's.
	Namespaces []string
	// ClusterScoped says that the resource has no namespaces, so that those of the factory do not apply.
	ClusterScoped bool
	// LabelSelector, FieldSelector and ShardSelector are evaluated by the server.
	LabelSelector, FieldSelector, ShardSelector string
	// Transform is applied to every object after that of the factory. TransformName is then required: functions
	// cannot be compared, so who gives the same name shares a cache, and the function of the first counts.
	Transform     func(objects.Object) (objects.Object, error)
	TransformName string
	// StandardDecoding is as in [listwatch.RESTOptions].
	StandardDecoding bool
}

// Factory shares informers: all who ask for the same objects in the same representation get one cache and one
// connection.
//
// Concurrency: all methods and [For] may be called at any time; an informer asked for while the factory runs starts
// at once.
type Factory struct {
	o      FactoryOptions
	client rest.Interface
	server *connection.Server

	mu sync.Mutex
	// caches is in order of creation. Those that nobody uses any more are not in it. It is changed by setCachesLocked.
	caches  []*cache
	running bool
	done    bool
	// started is nil unless Start runs the factory.
	started *background
	// added has capacity 1 and gets a token for Run when a cache was added. Never closed.
	added chan struct{}

	// published has the elements of caches, for Caches to read without the lock. The slice is replaced, never changed.
	published atomic.Pointer[[]Cache]
}

// engine is the pipeline of one cache: a [SharedInformer] of objects.
//
// It is an interface so that importers compile fast. A package that mentions a type compiles, once more, all methods of
// each instantiated generic type that the type reaches through fields and method signatures. Nearly every program
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
	// users counts those that have not given it back. Guarded by the factory's mu, as is stop.
	users int
	// stop ends the informer's Run; nil before that.
	stop context.CancelFunc
}

// answers decodes what the client itself reads: the server's errors. It never changes, and is as large as an informer.
var answers = sync.OnceValue(func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
})

// NewFactory returns a factory for the server that config names. Nothing is asked of the server before Run.
func NewFactory(config *rest.Config, o FactoryOptions) (*Factory, error) {
	if config == nil {
		return nil, errors.New("informer factory: the config is nil: it names the cluster to watch")
	}
	if o.Scheme == nil {
		o.Scheme = clientscheme.Scheme
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = answers()
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	config.Wrap(redirect.Refuse)
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("informer factory: %w", err)
	}
	f := &Factory{o: o, client: client, added: make(chan struct{}, 1)}
	f.setCachesLocked(nil)
	f.server = connection.NewServer(
		func(ctx context.Context) (string, error) { return connection.Identity(ctx, client) },
	)
	return f, nil
}

// Options are those that the factory was made with, the scheme filled in.
func (f *Factory) Options() FactoryOptions { return f.o }

// For returns the informer of all objects of type T, which the factory's scheme must know.
//
// It is shared: give it back by [Release] when it is not needed any more, if that is before the end.
//
// Errors: when the scheme does not know T; [ErrStopped] after the factory's Run.
func For[T objects.Object](f *Factory) (Informer[T], error) {
	return ForOptions[T](f, InformerOptions{})
}

// ForOptions returns the informer of the objects of type T that o describes. T may be *unstructured.Unstructured or
// *metav1.PartialObjectMetadata: those are caches of their own, the latter far smaller. T may be Object, for the cache
// that users of the Go type share.
//
// Errors: as [For].
func ForOptions[T objects.Object](f *Factory, o InformerOptions) (Informer[T], error) {
	var example any // Stays nil when T is the interface.
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Pointer {
		example = reflect.New(t.Elem()).Interface()
	}
	if f == nil {
		return nil, fmt.Errorf(
			"informer of %v: the factory is nil: NewFactory makes one, Informers of a manager is one",
			reflect.TypeFor[T](),
		)
	}
	id, newObject, err := f.identify(example, o)
	if err != nil {
		return nil, err
	}
	c, err := f.shared(id, newObject, o)
	if err != nil {
		return nil, err
	}
	return &view[T]{Informer: c.engine, resync: f.o.Resync, giveBack: func() { f.giveBack(c) }}, nil
}

// Release gives back an informer that [For] or [ForOptions] returned, and removes the handlers that were added
// through it, undelivered notifications included. When nobody uses the cache any more its informer is stopped, and
// freed with the last reference to what For returned. Releasing twice does nothing.
func Release[T objects.Object](inf Informer[T]) {
	if v, ok := inf.(*view[T]); ok {
		v.release()
	}
}

// shared returns the cache of that identity, making it when there is none.
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
		lw := listwatch.NewDiscovered(f.client, f.o.Mapper, id.Kind, listwatch.RESTOptions{
			Kind: id.Kind.Kind, Namespace: namespace, New: newObject,
			LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, ShardSelector: o.ShardSelector,
			StandardDecoding: id.standard,
		})
		lws[namespace] = lw
		c.discovered = lw.(interface { // Each namespace discovers the same.
			Resource() (schema.GroupResource, bool)
		}).Resource
	}
	c.engine = NewSharedInformerOfNamespaces(lws, Options[objects.Object]{
		Resource: c.Resource(), Transform: both(f.o.Transform, o.Transform),
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

// both applies two transforms, either of which may be nil.
func both(first, second func(objects.Object) (objects.Object, error)) func(objects.Object) (objects.Object, error) {
	if first == nil || second == nil {
		if first == nil {
			return second
		}
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

// giveBack counts one user less, and stops the informer when that was the last.
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

// Run runs all informers, also those asked for while it runs, until ctx is done; it returns when all have ended.
//
// Errors: when called twice, or after Start.
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

// run is Run, for who has set running.
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
	f.start(ctx, &informers) // What was asked for since the last time ends at once, so that nobody waits for it.
	informers.Wait()
}

// start runs the informers that do not run yet. They are waited for by Run.
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
			_ = c.Run(ctx) // It fails only when it was run before.
		})
	}
}

// WaitForSync waits until each informer that there is now has synced.
//
// Errors: when ctx ends first, one for each that has not, joined.
func (f *Factory) WaitForSync(ctx context.Context) error {
	var errs []error
	for _, c := range f.all() {
		if err := c.WaitForSync(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// Health returns that of each informer, in order of creation.
func (f *Factory) Health() []Health {
	caches := f.all()
	health := make([]Health, 0, len(caches))
	for _, c := range caches {
		health = append(health, c.Health())
	}
	return health
}

// Stats returns those of each informer, by resource. Where several caches hold one resource, their names tell what is
// special about each: "pods (metadata, app=web)".
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
