package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	own "github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/internal/closed"
)

// Cache implements controller-runtime's Cache with Flyball's informers. [NewCache] makes it.
//
// Concurrency: all methods may be called at any time.
type Cache struct {
	factory  *informer.Factory
	settings *settings
	// cluster reads the same informers for [NewClient], own writes included. It sends no requests: each client sends
	// its own.
	cluster *own.Cluster
	// stopped is closed when Start has ended.
	stopped chan struct{}
	// begun is closed when Start has begun.
	begun chan struct{}

	mu      sync.Mutex
	entries map[kind]*entry
}

var _ cache.Cache = (*Cache)(nil)

// kind identifies a cache: a kind, and the form of its objects.
type kind struct {
	gvk  schema.GroupVersionKind
	form form
}

// form is the representation of objects.
type form uint8

const (
	formTyped form = iota
	formUnstructured
	formMetadata
)

// NewCache is for [sigs.k8s.io/controller-runtime/pkg/manager.Options].NewCache. Its caches are Flyball's informers,
// read through controller-runtime's interface. It implements all options except EnableWatchBookmarks: it always
// requests bookmarks. If Options.NewInformer is set, it returns controller-runtime's cache, because the caller wants
// informers of its own.
//
// If the server forbids a list or watch, the error is in reads that wait for the cache, in the log once, and in
// [Cache.Health].
func NewCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	return cacheOver(config, o, informers(o))
}

// NewLeanCache is NewCache in a third of the memory: objects come without their managedFields, and equal parts of
// several objects are in memory once. controller-runtime forbids changing objects in handlers and predicates, and
// objects read under UnsafeDisableDeepCopy. With a lean cache such a change would affect all objects that share the
// part. Under a transform nothing is shared.
func NewLeanCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	lean := informers(o)
	lean.StandardDecoding = false
	return cacheOver(config, o, lean)
}

func cacheOver(config *rest.Config, o cache.Options, how informer.FactoryOptions) (cache.Cache, error) {
	if config == nil {
		return nil, fmt.Errorf("new cache: %w", errNoConfig)
	}
	if o.NewInformer != nil {
		return cache.New(config, o)
	}
	o, err := withDefaults(config, o)
	if err != nil {
		return nil, err
	}
	if config, err = over(config, o.HTTPClient); err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	how.Scheme, how.Mapper = o.Scheme, o.Mapper
	factory, err := informer.NewFactory(config, how)
	if err != nil {
		return nil, err
	}
	return newCache(config, o, factory)
}

// errNoConfig is the error for a nil configuration. "must specify Config" is controller-runtime's wording.
var errNoConfig = errors.New("must specify Config: it is nil; ctrl.GetConfig makes one")

// withDefaults fills in what NewCache and NewManager need.
func withDefaults(config *rest.Config, o cache.Options) (cache.Options, error) {
	o.Scheme = cmp.Or(o.Scheme, scheme.Scheme)
	var err error
	if o.HTTPClient == nil {
		if o.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
			return o, fmt.Errorf("new cache: %w", err)
		}
	}
	if o.Mapper == nil {
		if o.Mapper, err = apiutil.NewDynamicRESTMapper(config, o.HTTPClient); err != nil {
			return o, fmt.Errorf("new cache: %w", err)
		}
	}
	return o, nil
}

// informers returns the options of a factory for a cache with these options. The factory decodes objects as
// controller-runtime would.
func informers(o cache.Options) informer.FactoryOptions {
	return informer.FactoryOptions{
		Scheme: o.Scheme, Mapper: o.Mapper, StandardDecoding: true, Panics: handler.CrashOnPanic,
		OnError: watchError(o.DefaultWatchErrorHandler),
	}
}

// newCache returns a cache over a factory that reads through config.
func newCache(config *rest.Config, o cache.Options, factory *informer.Factory) (*Cache, error) {
	s, err := newSettings(o)
	if err != nil {
		return nil, err
	}
	c := &Cache{
		factory: factory, settings: s, stopped: make(chan struct{}), begun: make(chan struct{}),
		entries: map[kind]*entry{},
	}
	c.cluster, err = own.New(config, own.Options{
		Informers: factory, Scheme: o.Scheme, Mapper: o.Mapper,
		CacheFor: func(gvk schema.GroupVersionKind, namespaced bool) informer.InformerOptions {
			return s.of(gvk, namespaced)[0].informer(gvk, namespaced)
		},
	})
	return c, err
}

// through returns the cluster for a client with a configuration of its own.
func (c *Cache) through(config *rest.Config, httpClient *http.Client) (*own.Cluster, error) {
	if httpClient != nil {
		var err error
		if config, err = over(config, httpClient); err != nil {
			return nil, err
		}
	}
	return c.cluster.Through(warned(config))
}

// warned returns the configuration of a client that logs the server's warnings, unless they have a handler.
//
// Source: controller-runtime v0.25.2 pkg/client/client.go, newClient.
func warned(config *rest.Config) *rest.Config {
	if config.WarningHandler != nil || config.WarningHandlerWithContext != nil {
		return config
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = ctrllog.NewKubeAPIWarningLogger(ctrllog.KubeAPIWarningLoggerOptions{})
	return config
}

// over returns the configuration for requests through the transport of client, which authenticates them.
func over(config *rest.Config, client *http.Client) (*rest.Config, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: base.String(), Transport: client.Transport, Timeout: client.Timeout, UserAgent: config.UserAgent,
		QPS: config.QPS, Burst: config.Burst, RateLimiter: config.RateLimiter,
		WarningHandler: config.WarningHandler, WarningHandlerWithContext: config.WarningHandlerWithContext,
	}, nil
}

// watchError passes on the errors that client-go would have passed.
func watchError(handler watchErrorHandler) func(context.Context, error) {
	if handler == nil {
		return nil
	}
	return func(ctx context.Context, err error) {
		if request := (*informer.RequestError)(nil); errors.As(err, &request) {
			err = request.Err
		}
		handler(ctx, nameless(), err)
	}
}

// Start runs the informers, including those created later, until ctx is done.
func (c *Cache) Start(ctx context.Context) error {
	return c.during(func() error { return c.factory.Run(ctx) })
}

// during makes the cache readable while run runs its factory.
func (c *Cache) during(run func() error) error {
	c.mu.Lock()
	again := closed.Is(c.begun)
	if !again {
		close(c.begun)
	}
	c.mu.Unlock()
	if again {
		return errors.New("informer already started") // As controller-runtime says it.
	}
	defer close(c.stopped)
	return run()
}

// NeedLeaderElection returns false: followers keep their caches warm.
func (c *Cache) NeedLeaderElection() bool { return false }

// WaitForCacheSync waits until all existing caches have synced. If it fails, it logs the reason.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.begun:
	case <-ctx.Done():
		return false
	}
	err := c.factory.WaitForSync(ctx)
	if err != nil {
		ctrllog.FromContext(ctx).Error(err, "Caches have not synced")
	}
	return err == nil
}

// Health returns the health of each informer's connection to the server.
func (c *Cache) Health() []informer.Health { return c.factory.Health() }

// Stats returns the counters of each informer.
func (c *Cache) Stats() map[string]informer.Stats { return c.factory.Stats() }

// kindOf returns the kind of an object, or of the elements of a list.
func (c *Cache) kindOf(obj runtime.Object) (kind, error) {
	gvk, err := apiutil.GVKForObject(obj, c.settings.o.Scheme)
	if err != nil {
		return kind{}, err
	}
	k := kind{gvk: gvk}
	if _, object := obj.(client.Object); !object {
		k.gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		k.form = formMetadata
	case runtime.Unstructured:
		k.form = formUnstructured
	}
	return k, nil
}

// entry is the cache of one kind: one informer, or several if options differ between namespaces.
type entry struct {
	kind       kind
	namespaced bool
	parts      []part
	// removed is closed by RemoveInformer.
	removed chan struct{}
	// synced is done when all parts have synced.
	synced *allDone

	mu      sync.RWMutex
	indexes map[string]client.IndexerFunc
}

// part is one informer of an entry.
type part struct {
	setting
	informer.Informer[own.Object]
}

// of returns the entry of a kind, and makes it at the first call.
func (c *Cache) of(k kind) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[k]; e != nil {
		return e, nil
	}
	if k.form == formTyped {
		// A Binding has no list, and cannot be listed: no cache of it would ever sync.
		if _, err := c.settings.o.Scheme.New(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List")); err != nil {
			return nil, err
		}
	}
	namespaced, err := apiutil.IsGVKNamespaced(k.gvk, c.settings.o.Mapper)
	if err != nil {
		return nil, err
	}
	e := &entry{kind: k, namespaced: namespaced, removed: make(chan struct{}), indexes: map[string]client.IndexerFunc{}}
	example, err := e.example(c.settings.o.Scheme)
	if err != nil {
		return nil, err
	}
	for _, s := range c.settings.of(k.gvk, namespaced) {
		inf, err := informer.ForKind(c.factory, example, s.informer(k.gvk, namespaced))
		if err != nil {
			e.release()
			return nil, err
		}
		e.parts = append(e.parts, part{s, inf})
	}
	e.synced = newAllDone("cache of "+k.gvk.Kind, c.stopped, e.removed)
	for _, p := range e.parts {
		e.synced.add(p.Synced(), nil)
	}
	c.entries[k] = e
	return e, nil
}

func (e *entry) release() {
	for _, p := range e.parts {
		informer.Release(p.Informer)
	}
}

// example returns an empty object of the entry's kind and representation.
func (e *entry) example(scheme *runtime.Scheme) (own.Object, error) {
	var obj own.Object
	switch e.kind.form {
	case formUnstructured:
		obj = &unstructured.Unstructured{}
	case formMetadata:
		obj = &metav1.PartialObjectMetadata{}
	default:
		made, err := scheme.New(e.kind.gvk)
		if err != nil {
			return nil, err
		}
		obj = made.(own.Object) // The informer is one of such objects.
	}
	obj.GetObjectKind().SetGroupVersionKind(e.kind.gvk)
	return obj, nil
}

// waitForSync waits for all parts.
//
// Errors: a timeout, as controller-runtime's users expect, with the server's error.
func (e *entry) waitForSync(ctx context.Context) error {
	for _, p := range e.parts {
		if err := p.WaitForSync(ctx); err != nil {
			return &notSynced{kind: e.kind.gvk.Kind, why: err}
		}
	}
	return nil
}

// notSynced is a timeout, as controller-runtime's error is, with the reason.
type notSynced struct {
	kind string
	why  error
}

func (e *notSynced) Error() string {
	return fmt.Sprintf("the cache of %s has not synced: %v", e.kind, e.why)
}
func (e *notSynced) Unwrap() error { return e.why }

// Status implements APIStatus, so that errors.IsTimeout of k8s.io/apimachinery returns true.
func (e *notSynced) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Message: e.Error(),
	}
}
