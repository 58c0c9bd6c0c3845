package multicluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/buildcalls"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

type kind = schema.GroupVersionKind

// Handler turns the events of objects into requests, for the same cluster or for others. [ClusterFromContext] returns
// the cluster of the event.
type Handler = handler.EventHandler[informer.Object, Request]

// Builder collects the parts of a controller. Its methods return the Builder, so that calls can be chained. Mistakes in
// any of the calls are reported by Complete.
//
// Concurrency: one goroutine at a time.
type Builder struct {
	spec       controllerSpec
	calls      buildcalls.Calls
	elected    *bool
	inputs     []*input
	predicates []builder.PredicateFunc
}

// ControllerManagedBy begins a controller that works on the clusters of a fleet.
func ControllerManagedBy(m *Manager) *Builder {
	b := &Builder{spec: controllerSpec{fleet: m}, calls: buildcalls.Begin()}
	if m == nil {
		b.calls.Misuse("ControllerManagedBy: the fleet is nil; make one with multicluster.New")
	} else {
		b.spec.engageLocal = m.options.EngageLocal
	}
	return b
}

// For sets the kind that the controller reconciles. Each event of an object of that kind, in any cluster, makes a
// request that names the cluster and the object. For must be called once, unless the controller has only Watches and a
// name.
func (b *Builder) For(object informer.Object, o ...builder.WatchOptions) *Builder {
	h := handler.EnqueueObject[informer.Object]()
	return b.input(&input{call: "For", object: object, sameCluster: &h}, o)
}

// Owns watches objects that the controller makes. Each of their events makes a request for their owner: the object of
// For's kind, in the same cluster, that their owner references name as the controller. See builder.MatchEveryOwner.
func (b *Builder) Owns(object informer.Object, o ...builder.WatchOptions) *Builder {
	return b.input(&input{call: "Owns", object: object, owns: true}, o)
}

// Watches watches other objects in each cluster. h turns their events into requests for the cluster of the event.
func (b *Builder) Watches(object informer.Object, h builder.Handler, o ...builder.WatchOptions) *Builder {
	funcs := handler.Of(h)
	return b.input(&input{call: "Watches", object: object, sameCluster: &funcs}, o)
}

// WatchesAcross watches other objects in each cluster. h turns their events into requests for any clusters.
func (b *Builder) WatchesAcross(object informer.Object, h Handler, o ...builder.WatchOptions) *Builder {
	return b.input(&input{call: "WatchesAcross", object: object, anyCluster: &h}, o)
}

// WatchesLocal watches objects of the local cluster, whatever EngageLocal is. h turns their events into requests for
// any clusters. Controllers use it to apply declarations in the local cluster to others.
func (b *Builder) WatchesLocal(object informer.Object, h Handler, o ...builder.WatchOptions) *Builder {
	return b.input(&input{call: "WatchesLocal", object: object, anyCluster: &h, onlyLocal: true}, o)
}

// WatchesClusters turns the arrival and departure of clusters into requests, for these clusters or for others. A
// controller that applies declarations in the local cluster to others needs both events: a cluster that joins needs the
// declarations, too, and one that has left no longer belongs in their status. A nil function ignores the event.
//
// onLive is called for a cluster that the controller selects, once its caches there are filled, and again when the
// cluster's labels change. If it fails, it is called again, with backoff. onGone is called for a cluster that has
// departed, or that the controller no longer selects. It is not called when the process stops.
//
// Concurrency: the functions should only compute requests. Work that takes long belongs in the reconciler.
func (b *Builder) WatchesClusters(onLive func(ctx context.Context, c *Cluster) ([]Request, error),
	onGone func(ctx context.Context, c ClusterInfo) []Request,
) *Builder {
	if onLive == nil && onGone == nil {
		b.calls.Misuse("WatchesClusters: there is no function")
		return b
	}
	b.spec.clusterHandlers = append(b.spec.clusterHandlers, clusterHandler{onLive, onGone})
	return b
}

// WithEventFilter drops the events that p rejects. It may be called several times: an event must then pass every
// predicate.
func (b *Builder) WithEventFilter(p builder.Predicate) *Builder {
	if b.calls.Given("WithEventFilter", "predicate", p) {
		b.predicates = append(b.predicates, predicate.Of(p))
	}
	return b
}

// WithClusterFilter restricts the controller to the clusters that f selects by their current names and labels; see
// [MatchLabels]. It may be called several times: a cluster must then pass every filter. The filters do not apply to the
// local cluster.
//
// Concurrency: f may be called from any goroutine, with no lock held. Its result must depend on its argument alone.
func (b *Builder) WithClusterFilter(f func(c ClusterInfo) bool) *Builder {
	if b.calls.Given("WithClusterFilter", "filter", f) {
		b.spec.clusterFilters = append(b.spec.clusterFilters, f)
	}
	return b
}

// EngageLocal sets whether the controller also watches the local cluster. The default is the fleet's
// Options.EngageLocal.
func (b *Builder) EngageLocal(engage bool) *Builder {
	b.spec.engageLocal = engage
	return b
}

// ReportGone sets what happens to requests that are queued when their cluster departs. The default drops them. If
// report is true, the reconciler is called for them: [ClusterFromContext] then finds no cluster, and
// [Manager.GetCluster] returns [ErrClusterGone] for the request's cluster.
func (b *Builder) ReportGone(report bool) *Builder {
	b.spec.reportGone = report
	return b
}

// WithOptions sets the options of the inner controller. Workers is how many reconciles run at once in all clusters
// together; zero means 8. See also Options.ClusterWorkers and Options.ReleaseAfter of the fleet. Nil Metrics means the
// metrics of the local manager. FailingAfter has no effect: [Controller.Note] reports keys that hang or fail, and they
// do not make the process unready.
func (b *Builder) WithOptions(o reconcile.Options[Request]) *Builder {
	b.calls.Options(o.Workers, defaultWorkers)
	if o.Order != nil {
		b.calls.Misuse("WithOptions: Order: the queue of a fleet's controller has lanes of clusters, each by priority")
	}
	if o.Admit != nil || o.ReleaseAfter != 0 {
		b.calls.Misuse("WithOptions: Admit and ReleaseAfter: the fleet sets them, ReleaseAfter from its own Options")
	}
	b.spec.options = o
	return b
}

// Named names the controller in logs, metrics and health. Without it the name is the kind given to For, in lower case.
func (b *Builder) Named(name string) *Builder {
	b.calls.Named(name)
	return b
}

// NeedLeaderElection sets whether the controller runs only while its process leads. The default is true. For a fleet
// with an Owner it is false, because the Owner decides for each cluster which replica works on it.
func (b *Builder) NeedLeaderElection(needs bool) *Builder {
	b.elected = &needs
	return b
}

// Complete builds the controller and adds it to the local manager. The controller works on the clusters that are in the
// fleet and on those that join later.
//
// Errors: those of [Builder.Build]; a name that the manager already has.
func (b *Builder) Complete(r reconcile.Reconciler[Request]) error {
	c, err := b.Build(r)
	if err != nil {
		return err
	}
	if err := b.spec.fleet.local.Add(c); err != nil {
		c.Release()
		return fmt.Errorf("build controller %s: %w; Named gives a controller another name", c.Name(), err)
	}
	return nil
}

// Build makes a controller without adding it to the local manager. Each call makes another controller.
//
// Errors: the mistakes in all earlier calls, joined.
func (b *Builder) Build(r reconcile.Reconciler[Request]) (*Controller, error) {
	name, err := b.calls.End(r, len(b.spec.clusterHandlers))
	if err != nil {
		return nil, err
	}
	p := b.spec
	p.name = name
	p.reconciler = r
	for _, in := range b.inputs {
		finished := *in
		finished.filters = append(b.predicates[:len(b.predicates):len(b.predicates)], in.options.Predicates...)
		if in.owns {
			finished.owner = p.forInput.kind
		}
		p.inputs = append(p.inputs, &finished)
	}
	p.leaderless = p.fleet.options.Owner != nil
	if b.elected != nil {
		p.leaderless = !*b.elected
	}
	if p.options.Metrics == nil {
		p.options.Metrics = p.fleet.local.QueueMetrics()
	}
	c := newController(&p)
	p.fleet.addController(c)
	return c, nil
}

// isEmpty reports whether h is a handler without any function. A nil h is not empty: its input has another kind of
// handler.
func isEmpty[K comparable](h *handler.EventHandler[informer.Object, K]) bool {
	return h != nil && h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil
}

// input checks a call of For, Owns or Watches, and adds it to inputs if it is correct.
func (b *Builder) input(in *input, o []builder.WatchOptions) *Builder {
	in.options = builder.Merge(o...)
	noted := buildcalls.Input{
		Call: in.call, Object: in.object, EveryOwner: in.options.EveryOwner,
		EmptyHandler: isEmpty(in.sameCluster) || isEmpty(in.anyCluster),
		NilPredicate: buildcalls.HasNil(in.options.Predicates),
	}
	if b.spec.fleet != nil {
		noted.KindOf = b.kindOf
	}
	var ok bool
	if in.kind, ok = b.calls.Input(noted); !ok {
		return b
	}
	if in.call == "For" {
		b.spec.forInput = in
	}
	b.inputs = append(b.inputs, in)
	return b
}

// kindOf returns the kind of an example object, which the scheme finds by its Go type.
func (b *Builder) kindOf(object runtime.Object) (kind, error) {
	found, err := b.spec.fleet.kinds.GroupVersionKindFor(object)
	if err != nil {
		err = fmt.Errorf("the fleet's scheme does not know the type: call AddToScheme of its package, and give the "+
			"scheme in Options.Scheme (%w)", err)
	}
	return found, err
}

// PerCluster returns a reconciler for a fleet that uses a separate reconciler for every cluster. It calls build once
// for each incarnation of a cluster, and passes all requests of that incarnation to the reconciler that build returned.
// So a reconciler that was written for one cluster, and holds a client, works on many clusters unchanged. When a
// cluster departs, its reconciler is dropped.
//
// Errors: if build fails, the reconcile fails with the error of build, and the next request calls build again.
func PerCluster(build func(c *Cluster) (reconcile.Reconciler[reconcile.Request], error)) reconcile.Reconciler[Request] {
	if build == nil {
		panic("multicluster: PerCluster: the function that builds reconcilers is nil")
	}
	return &perCluster{build: build}
}

type perCluster struct {
	build func(c *Cluster) (reconcile.Reconciler[reconcile.Request], error)
}

// Reconcile implements reconcile.Reconciler.
func (p *perCluster) Reconcile(ctx context.Context, r Request) (reconcile.Result, error) {
	c, ok := ClusterFromContext(ctx)
	if !ok {
		return reconcile.Result{}, &clusterError{Cluster: r.Cluster, State: Gone, Err: ErrClusterGone}
	}
	reconciler, err := c.reconcilers.get(ctx, p, c)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reconciler of cluster %q: %w", r.Cluster, err)
	}
	return reconciler.Reconcile(ctx, r.Request)
}

// reconcilers are the reconcilers that calls of PerCluster have built for one cluster. They are freed with the cluster.
type reconcilers struct {
	mu    sync.Mutex
	built map[*perCluster]*building
}

// building is a reconciler that is being built or has been built.
type building struct {
	// done is closed by the reconcile that builds the reconciler, after reconciler and err are set. Never sent on.
	done       chan struct{}
	reconciler reconcile.Reconciler[reconcile.Request]
	err        error
}

// get returns p's reconciler for a cluster. The first call builds it, with no lock held. Calls that come meanwhile wait
// for it and share its error.
func (r *reconcilers) get(ctx context.Context, p *perCluster, c *Cluster,
) (reconcile.Reconciler[reconcile.Request], error) {
	r.mu.Lock()
	b := r.built[p]
	if b == nil {
		if r.built == nil {
			r.built = map[*perCluster]*building{}
		}
		b = &building{done: make(chan struct{}), err: errors.New("the build function panicked")}
		r.built[p] = b
		r.mu.Unlock()
		return r.build(b, p, c)
	}
	r.mu.Unlock()
	select {
	case <-b.done:
		return b.reconciler, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// build calls p.build. It forgets a reconciler that could not be built, so that the next request tries again.
func (r *reconcilers) build(b *building, p *perCluster, c *Cluster,
) (reconcile.Reconciler[reconcile.Request], error) {
	defer func() {
		if b.err != nil {
			r.mu.Lock()
			delete(r.built, p)
			r.mu.Unlock()
		}
		close(b.done)
	}()
	b.reconciler, b.err = p.build(c)
	if b.err == nil && misuse.IsNil(b.reconciler) {
		b.err = errors.New("the build function returned nil")
	}
	return b.reconciler, b.err
}

// ForSingleCluster adapts a reconciler for a fleet to a controller of one cluster: r is called with the requests of c,
// and [ClusterFromContext] returns c. So a controller that was written for many clusters works on one, too. [ClusterOf]
// returns the cluster of a manager.
func ForSingleCluster(c *Cluster, r reconcile.Reconciler[Request]) reconcile.Reconciler[reconcile.Request] {
	if c == nil || misuse.IsNil(r) {
		panic("multicluster: ForSingleCluster: the cluster or the reconciler is nil; ClusterOf makes a cluster of a " +
			"manager")
	}
	return reconcile.Func[reconcile.Request](func(ctx context.Context,
		request reconcile.Request,
	) (reconcile.Result, error) {
		return r.Reconcile(WithCluster(ctx, c), Request{Cluster: c.Name(), Request: request})
	})
}
