package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// FactoryOptions configure a [Factory]. The zero value works.
type FactoryOptions struct {
	// Scheme tells the kinds of Go types; nil is that of client-go, which knows the built-in API types.
	Scheme *runtime.Scheme
	// Mapper tells the resources of kinds; nil asks the server's discovery, when an informer first lists.
	Mapper meta.RESTMapper
	// Namespaces restricts the informers of namespaced resources; none is all namespaces.
	Namespaces []string
	// Transform is applied to every object of every informer; see [ReflectorOptions].
	Transform func(Object) (Object, error)
	// Backoff and Panics are as in [Options], for every informer.
	Backoff Backoff
	Panics  PanicPolicy
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
}

// Factory shares informers: all who ask for the same objects in the same representation get one cache and one connection.
//
// Concurrency: all methods and [For] may be called at any time; an informer asked for while the factory runs starts at once.
type Factory struct {
	o      FactoryOptions
	client rest.Interface

	mu sync.Mutex
	// caches is in order of creation.
	caches []*cache
	// started is the number of caches, from the front, that Run has started.
	started int
	running bool
	done    bool
	// added has capacity 1 and gets a token for Run when a cache was added. Never closed.
	added chan struct{}
}

// cache is one informer of a factory.
type cache struct {
	identity identityOfCache
	informer *SharedInformer[Object]
}

// identityOfCache is what two users must agree on to share a cache.
type identityOfCache struct {
	form                                        form
	kind                                        schema.GroupVersionKind
	namespaces                                  string
	labelSelector, fieldSelector, shardSelector string
}

// NewFactory returns a factory for the server that config names. Nothing is asked of the server before Run.
func NewFactory(config *rest.Config, o FactoryOptions) (*Factory, error) {
	if o.Scheme == nil {
		o.Scheme = clientscheme.Scheme
	}
	answers := runtime.NewScheme() // What the client itself decodes: the server's errors.
	metav1.AddToGroupVersion(answers, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(answers).WithoutConversion()
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("informer factory: %w", err)
	}
	return &Factory{o: o, client: client, added: make(chan struct{}, 1)}, nil
}

// For returns the informer of all objects of type T, which the factory's scheme must know.
//
// Errors: when the scheme does not know T; [ErrStopped] after the factory's Run.
func For[T Object](f *Factory) (Informer[T], error) { return ForOptions[T](f, InformerOptions{}) }

// ForOptions returns the informer of the objects of type T that o describes. T may be *unstructured.Unstructured or
// *metav1.PartialObjectMetadata: those are caches of their own, the latter far smaller. T may be Object, for the cache
// that users of the Go type share.
//
// Errors: as [For].
func ForOptions[T Object](f *Factory, o InformerOptions) (Informer[T], error) {
	var example any // Stays nil when T is the interface.
	if t := reflect.TypeFor[T](); t.Kind() == reflect.Pointer {
		example = reflect.New(t.Elem()).Interface()
	}
	id, newObject, err := f.identify(example, o)
	if err != nil {
		return nil, err
	}
	shared, err := f.shared(id, newObject, o)
	if err != nil {
		return nil, err
	}
	return typed[T](shared), nil
}

// identify finds out what is wanted by someone who holds objects like example, and how to make one.
func (f *Factory) identify(example any, o InformerOptions) (id identityOfCache, newObject func() Object, err error) {
	id = identityOfCache{kind: o.Kind, labelSelector: o.LabelSelector, fieldSelector: o.FieldSelector, shardSelector: o.ShardSelector}
	namespaces := slices.Clone(o.Namespaces)
	if namespaces == nil && !o.ClusterScoped {
		namespaces = slices.Clone(f.o.Namespaces)
	}
	slices.Sort(namespaces)
	id.namespaces = strings.Join(slices.Compact(namespaces), ",")
	switch example := example.(type) {
	case *unstructured.Unstructured:
		id.form = formUnstructured
		newObject = func() Object { return &unstructured.Unstructured{} }
	case *metav1.PartialObjectMetadata:
		id.form = formMetadata
		newObject = func() Object { return &metav1.PartialObjectMetadata{} }
	case Object:
		kinds, _, err := f.o.Scheme.ObjectKinds(example)
		if err != nil {
			return id, nil, fmt.Errorf("informer of %T: %w", example, err)
		}
		id.kind = kinds[0]
		newObject = f.newTyped(id.kind)
	default: // The interface type itself.
		newObject = f.newTyped(id.kind)
	}
	if id.kind.Kind == "" {
		return id, nil, fmt.Errorf("informer of %T: InformerOptions.Kind is needed", example)
	}
	if id.form == formTyped && !f.o.Scheme.Recognizes(id.kind) {
		return id, nil, fmt.Errorf("informer of %s: the scheme does not know the kind", id.kind)
	}
	return id, newObject, nil
}

func (f *Factory) newTyped(kind schema.GroupVersionKind) func() Object {
	return func() Object {
		obj, err := f.o.Scheme.New(kind)
		if err != nil {
			panic(err) // identify made sure that the scheme knows it.
		}
		return obj.(Object)
	}
}

// shared returns the informer of that identity, making it when there is none.
func (f *Factory) shared(id identityOfCache, newObject func() Object, o InformerOptions) (*SharedInformer[Object], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.caches {
		if c.identity == id {
			return c.informer, nil
		}
	}
	if f.done {
		return nil, fmt.Errorf("informer of %s: %w", id.kind, ErrStopped)
	}
	plural, _ := meta.UnsafeGuessKindToResource(id.kind) // A name for messages, until discovery knows better.
	lws := map[string]ListerWatcher[Object]{}
	for namespace := range strings.SplitSeq(id.namespaces, ",") {
		lws[namespace] = &discovered{
			factory: f, kind: id.kind, newObject: newObject,
			o: RESTOptions{
				Kind: id.kind.Kind, Namespace: namespace, New: newObject,
				LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, ShardSelector: o.ShardSelector,
			},
		}
	}
	c := &cache{identity: id, informer: NewSharedInformerOfNamespaces(lws, Options[Object]{
		Resource: plural.GroupResource().String(), Transform: f.o.Transform, Backoff: f.o.Backoff, Panics: f.o.Panics,
	})}
	f.caches = append(f.caches, c)
	select {
	case f.added <- struct{}{}:
	default:
	}
	return c.informer, nil
}

// Run runs all informers, also those asked for while it runs, until ctx is done; it returns when all have ended.
//
// Errors: when called twice.
func (f *Factory) Run(ctx context.Context) error {
	f.mu.Lock()
	again := f.running
	f.running = true
	f.mu.Unlock()
	if again {
		return errors.New("informer factory: Run called twice")
	}
	var informers sync.WaitGroup
	for ctx.Err() == nil {
		for _, c := range f.starting() {
			informers.Go(func() { _ = c.informer.Run(ctx) }) // It fails only when it was run before.
		}
		select {
		case <-f.added:
		case <-ctx.Done():
		}
	}
	f.mu.Lock()
	f.done = true
	f.mu.Unlock()
	informers.Wait()
	return nil
}

// starting returns the caches that were added since the last call.
func (f *Factory) starting() []*cache {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := slices.Clone(f.caches[f.started:])
	f.started = len(f.caches)
	return fresh
}

// WaitForSync waits until each informer that there is now has synced.
//
// Errors: when ctx ends first, one [SyncError] for each that has not, joined.
func (f *Factory) WaitForSync(ctx context.Context) error {
	var errs []error
	for _, c := range f.all() {
		if err := c.informer.WaitForSync(ctx); err != nil {
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
		health = append(health, c.informer.Health())
	}
	return health
}

// Stats returns those of each informer, by resource. Where several caches hold one resource, their names tell what is
// special about each: "pods (metadata, app=web)".
func (f *Factory) Stats() map[string]Stats {
	stats := map[string]Stats{}
	for _, c := range f.all() {
		stats[c.name()] = c.informer.Stats()
	}
	return stats
}

func (f *Factory) all() []*cache {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.caches)
}

func (c *cache) name() string {
	var special []string
	switch c.identity.form {
	case formUnstructured:
		special = append(special, "unstructured")
	case formMetadata:
		special = append(special, "metadata")
	}
	for _, s := range []string{c.identity.namespaces, c.identity.labelSelector, c.identity.fieldSelector, c.identity.shardSelector} {
		if s != "" {
			special = append(special, s)
		}
	}
	if special == nil {
		return c.informer.o.Resource
	}
	return c.informer.o.Resource + " (" + strings.Join(special, ", ") + ")"
}
