package multicluster

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/workqueue"
)

// controllerSpec is the configuration of a controller. It never changes, because Rebuild makes another controller from
// it.
type controllerSpec struct {
	fleet           *Manager
	name            string
	reconciler      reconcile.Reconciler[Request]
	options         reconcile.Options[Request]
	inputs          []*input
	forInput        *input // The input of For; nil without it.
	clusterFilters  []func(ClusterInfo) bool
	clusterHandlers []clusterHandler
	engageLocal     bool
	leaderless      bool
	reportGone      bool
}

// maxReleased is how many slow reconciles of one controller may run in addition to its workers, after their slots were
// released; see Options.ReleaseAfter.
const maxReleased = 64

const defaultWorkers = 8

func (s *controllerSpec) workers() int {
	if s.options.Workers > 0 {
		return s.options.Workers
	}
	return defaultWorkers
}

func (s *controllerSpec) clusterWorkers() int {
	if n := s.fleet.options.ClusterWorkers; n > 0 {
		return min(n, s.workers())
	}
	return max(1, s.workers()/2)
}

// selects reports whether the controller takes requests for a cluster. It always takes requests for the local cluster,
// even if it does not watch that cluster.
func (s *controllerSpec) selects(inc *incarnation) bool {
	if inc == s.fleet.localCluster {
		return true
	}
	for _, f := range s.clusterFilters {
		if !f(inc.cluster.Info()) {
			return false
		}
	}
	return true
}

// inputsOf returns the inputs that the controller watches in a cluster.
func (s *controllerSpec) inputsOf(inc *incarnation) (inputs []*input) {
	for _, in := range s.inputs {
		switch {
		case inc != s.fleet.localCluster && !in.onlyLocal,
			inc == s.fleet.localCluster && (in.onlyLocal || s.engageLocal):
			inputs = append(inputs, in)
		}
	}
	return inputs
}

// innerOptions returns the options of the inner controller. FailingAfter is off, because a failure in one cluster must
// not make the process unready.
func (s *controllerSpec) innerOptions(order *workqueue.Order[key]) reconcile.Options[key] {
	o := s.options
	inner := reconcile.Options[key]{
		Workers: s.workers(), MaxRetries: o.MaxRetries, Timeout: o.Timeout,
		MinInterval: o.MinInterval, Debounce: o.Debounce, MaxDebounce: o.MaxDebounce,
		HungAfter: o.HungAfter, FailingAfter: -1, DrainTimeout: o.DrainTimeout, Order: order, Metrics: o.Metrics,
		ReleaseAfter: s.fleet.options.ReleaseAfter,
	}
	if inner.ReleaseAfter > 0 {
		inner.Workers += maxReleased
	}
	if o.RateLimiter != nil {
		inner.RateLimiter = keyLimiter{o.RateLimiter}
	}
	return inner
}

// keyLimiter adapts a rate limiter of requests to keys.
type keyLimiter struct {
	requests workqueue.RateLimiter[Request]
}

func (l keyLimiter) When(k key) time.Duration { return l.requests.When(k.public()) }
func (l keyLimiter) Forget(k key)             { l.requests.Forget(k.public()) }
func (l keyLimiter) NumRequeues(k key) int    { return l.requests.NumRequeues(k.public()) }

// clusterHandler is one call of WatchesClusters.
type clusterHandler struct {
	onLive func(ctx context.Context, c *Cluster) ([]Request, error)
	onGone func(ctx context.Context, c ClusterInfo) []Request
}

// input is one call of For, Owns or Watches.
type input struct {
	call    string // "For", for messages
	object  informer.Object
	kind    kind
	options builder.WatchOptions
	// onlyLocal means that only the local cluster is watched.
	onlyLocal bool
	owns      bool
	// sameCluster turns events into requests for the cluster of the event, anyCluster into requests for any clusters.
	// Invariant: exactly one of sameCluster, anyCluster and owns is set.
	sameCluster *builder.HandlerFuncs
	anyCluster  *Handler
	// filters are the predicates of the controller and of the call.
	filters []builder.PredicateFunc
	// owner is the kind whose objects Owns makes requests for.
	owner kind
}

// handler returns the handler of the input's events.
func (in *input) handler(ownersInNamespaces bool) Handler {
	var h Handler
	switch {
	case in.anyCluster != nil:
		h = *in.anyCluster
	case in.owns:
		o := handler.OwnerOptions{ClusterScoped: !ownersInNamespaces, EveryOwner: in.options.EveryOwner}
		h = addCluster(handler.EnqueueOwner[informer.Object](in.owner.GroupKind(), o))
	default:
		h = addCluster(*in.sameCluster)
	}
	if len(in.filters) > 0 {
		h = handler.Filter(h, in.filters...)
	}
	return h
}

// addCluster adapts a handler whose requests name no cluster: they are for the cluster of the event.
func addCluster(h builder.HandlerFuncs) Handler {
	var adapted Handler
	if h.OnAdd != nil {
		adapted.OnAdd = func(ctx context.Context, obj informer.Object, initial bool, q reconcile.Enqueuer[Request]) {
			h.OnAdd(ctx, obj, initial, enqueuerFor(ctx, q))
		}
	}
	if h.OnUpdate != nil {
		adapted.OnUpdate = func(ctx context.Context, old, obj informer.Object, q reconcile.Enqueuer[Request]) {
			h.OnUpdate(ctx, old, obj, enqueuerFor(ctx, q))
		}
	}
	if h.OnDelete != nil {
		adapted.OnDelete = func(ctx context.Context, gone informer.Deleted[informer.Object],
			q reconcile.Enqueuer[Request],
		) {
			h.OnDelete(ctx, gone, enqueuerFor(ctx, q))
		}
	}
	return adapted
}

// enqueuerFor returns an enqueuer that adds the name of the event's cluster to requests.
func enqueuerFor(ctx context.Context, q reconcile.Enqueuer[Request]) reconcile.Enqueuer[reconcile.Request] {
	name := LocalCluster
	if c, ok := ClusterFromContext(ctx); ok {
		name = c.Name()
	}
	return &clusterEnqueuer{name: name, q: q}
}

type clusterEnqueuer struct {
	name string
	q    reconcile.Enqueuer[Request]
}

func (l *clusterEnqueuer) Add(r reconcile.Request) { l.q.Add(Request{l.name, r}) }

func (l *clusterEnqueuer) AddAfter(r reconcile.Request, d time.Duration) {
	l.q.AddAfter(Request{l.name, r}, d)
}

func (l *clusterEnqueuer) AddRateLimited(r reconcile.Request) { l.q.AddRateLimited(Request{l.name, r}) }

func (l *clusterEnqueuer) AddWith(r reconcile.Request, o workqueue.AddOptions) {
	l.q.AddWith(Request{l.name, r}, o)
}
