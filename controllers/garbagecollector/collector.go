package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/groupclient"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	// Name is the controller's name, the one it has in kube-controller-manager.
	Name = "garbage-collector-controller"
	// Component is the source that its events name.
	Component = "garbage-collector-controller"
)

// Options configures the collector. The zero value works.
type Options struct {
	// Workers is how many objects each of the two queues works on at once. Zero means 20.
	Workers int
	// DiscoveryPeriod is how often the server is asked for its resources. Zero means 30 s.
	DiscoveryPeriod time.Duration
	// Ignored are resources that are not watched. Their objects are not collected; as owners, they are read from the
	// server. Nil means events.
	Ignored []schema.GroupResource
	// Informers is a factory of other informers of the same server; see [informer.Options].Server. Nil means none.
	Informers *informer.Factory
	// Mapper finds the resource of an owner reference's kind. If it can be reset, it is reset when the server's
	// resources change, and at each discovery while the collector leaves objects alone. Nil means one made from the
	// server's discovery.
	Mapper meta.RESTMapper
	// Metrics receives the queues' metrics. If it has the method Gauge of package manager/metrics, it also receives the
	// number of objects that the collector leaves alone because they or their owners cannot be looked for. Nil means
	// none.
	Metrics workqueue.MetricsProvider
}

// collector is the garbage collector. See the package comment.
//
// Concurrency: all methods may be called from any goroutine; Run once.
type collector struct {
	options   Options
	discovery discovery.DiscoveryInterface
	recorder  events.Recorder
	remote    *remote
	graph     *graph
	monitors  *monitors
	// deletes works on objects that may have to be deleted, orphans on owners whose dependents are to be orphaned.
	deletes, orphans *reconcile.Controller[key]
	unresolved       unresolved

	started       atomic.Bool
	lastDiscovery atomic.Pointer[discoveryResult] // nil before the first
	deleted       atomic.Int64
}

// New makes the collector. Nothing runs before Run. The collector makes two clients from config, each with
// the config's limit on requests: one for discovery and the informers, and one for the metadata of objects. The
// recorder records events as [Component].
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go
func New(config *rest.Config, recorder events.Recorder, o Options) (manager.Runnable, error) {
	resources, err1 := groupclient.Discovery(config)
	objects, err2 := metadata.NewForConfig(config)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("%s: new client: %w", Name, err)
	}
	if o.Mapper == nil {
		o.Mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(resources))
	}
	if o.Ignored == nil {
		o.Ignored = defaultIgnored
	}
	o.Workers = orDefault(o.Workers, 20)
	o.DiscoveryPeriod = orDefault(o.DiscoveryPeriod, 30*time.Second)
	gc := &collector{
		options:   o,
		discovery: resources,
		recorder:  recorder,
		remote:    &remote{client: objects, mapper: o.Mapper},
		graph:     newGraph(),
	}
	gc.monitors = &monitors{
		server: o.Informers,
		client: resources.RESTClient(),
		observed: func(ctx context.Context, o object) {
			gc.applyEffects(ctx, gc.graph.observe(o))
			gc.retry(gc.unresolved.keysOf(o.id.uid)...)
		},
		deleted: func(ctx context.Context, id identity) { gc.applyEffects(ctx, gc.graph.forget(id)) },
		stopped: func(ctx context.Context, stopped []int64) { gc.applyEffects(ctx, gc.graph.forgetMonitors(stopped)) },
	}
	queue := func(name string, attempt reconcile.Func[key]) *reconcile.Controller[key] {
		return reconcile.New(name, reconcile.Func[key](func(ctx context.Context, k key) (reconcile.Result, error) {
			result, err := attempt(ctx, k)
			return result, gc.unresolved.record(k, err)
		}), reconcile.Options[key]{Workers: o.Workers, Metrics: o.Metrics})
	}
	gc.deletes = queue("garbage_collector_attempt_to_delete", gc.attemptToDelete)
	gc.orphans = queue("garbage_collector_attempt_to_orphan", gc.attemptToOrphan)
	if m, ok := o.Metrics.(interface {
		Gauge(name, help string, value func() float64)
	}); ok {
		m.Gauge("garbage_collector_unresolved_objects",
			"Current number of objects that the garbage collector leaves alone because they or their owners cannot be "+
				"looked for", func() float64 { return float64(gc.unresolved.count()) })
	}
	return gc, nil
}

func orDefault[T int | time.Duration](value, byDefault T) T {
	if value <= 0 {
		return byDefault
	}
	return value
}

// Name is [Name].
func (c *collector) Name() string { return Name }

// Run collects until ctx is done, and returns when all that it started has ended. It may be called once.
func (c *collector) Run(ctx context.Context) error {
	if c.started.Swap(true) {
		return fmt.Errorf("%s: %w", Name, reconcile.ErrStopped)
	}
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "controller", Name))
	found := make(chan struct{}) // closed by the goroutine below at the first success; capacity 0
	var wg sync.WaitGroup
	wg.Go(func() { c.discover(ctx, sync.OnceFunc(func() { close(found) })) })
	c.waitForSync(ctx, found)
	var errs [2]error
	wg.Go(func() { errs[0] = c.deletes.Run(ctx) })
	wg.Go(func() { errs[1] = c.orphans.Run(ctx) })
	wg.Wait()
	c.monitors.wg.Wait()
	return errors.Join(errs[:]...)
}

// syncTimeout is how long the start waits until all objects are known.
const syncTimeout = 30 * time.Second

// waitForSync waits until the graph is complete, but at most for syncTimeout. Then the workers start anyway, which is
// safe: they verify before they delete.
func (c *collector) waitForSync(ctx context.Context, found <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	logger := klog.FromContext(ctx)
	select {
	case <-found:
	case <-ctx.Done():
		return
	}
	for _, m := range c.monitors.waitForSync(ctx) {
		logger.Info("Starting workers before all objects are known",
			"resource", m.resource, "err", m.err())
	}
}

// Loops returns the collector's controllers.
func (c *collector) Loops() []reconcile.Loop { return []reconcile.Loop{c.deletes, c.orphans} }

// Health returns nil when all objects that can be collected are known, and otherwise an error that names what is
// missing.
func (c *collector) Health() error {
	result := c.lastDiscovery.Load()
	if result == nil {
		return fmt.Errorf("%s: discovery has not finished yet", Name)
	}
	errs := []error{result.err}
	for _, m := range c.monitors.list() {
		if !m.handler.HasSynced() {
			errs = append(errs, m.err())
		}
	}
	return errors.Join(errs...)
}
