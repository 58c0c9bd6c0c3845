package multiclusterruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	peer "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/multicluster"
	own "github.com/flyball-dev/flyball/workqueue"
)

// Provider returns a provider for Flyball's own fleets, package multicluster, which announces the clusters that p
// engages. Only the names and configs of p's clusters are used: the fleet connects to them by itself, with clients and
// caches of its own. A name that p engages again, for another cluster, is announced as another cluster.
//
// p does not say when it has engaged all clusters there are. They count as announced at once, and after p has failed
// and was started again, after half a minute: clusters that it has not engaged again by then leave.
//
// The clusters of p must be API servers of their own. For views of one server, such as its namespaces, write a provider
// that sets Announcement.Namespace.
func Provider(p interface {
	peer.Provider
	peer.ProviderRunnable
},
) multicluster.Provider {
	return &provider{peer: p}
}

// resettle is the time that a provider has after a failure to engage its clusters again.
const resettle = 30 * time.Second

type provider struct {
	peer peer.ProviderRunnable
	// failed means that an earlier Run has ended. It is used by Run only, which runs once at a time.
	failed bool
}

// Name implements [multicluster.Provider]. It is the type of the wrapped provider.
func (p *provider) Name() string { return fmt.Sprintf("%T", p.peer) }

// Health implements [multicluster.Provider].
func (p *provider) Health() error { return nil }

// Run implements [multicluster.Provider].
func (p *provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	a := &aware{fleet: fleet, stopping: ctx.Done(), engaged: map[string]*engagement{}}
	ctx, cancel := context.WithCancel(ctx)
	var synced sync.WaitGroup
	if p.failed {
		synced.Go(func() {
			select {
			case <-time.After(resettle):
				fleet.Synced()
			case <-ctx.Done():
			}
		})
	} else {
		fleet.Synced()
	}
	p.failed = true
	err := p.peer.Start(ctx, a)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	a.end()
	cancel()
	synced.Wait()
	return err
}

// aware is what a provider engages clusters with.
type aware struct {
	fleet multicluster.Fleet
	// stopping is closed when the provider's Run is to end, and the contexts of its clusters with it: they do not
	// leave.
	stopping <-chan struct{}

	mu sync.Mutex
	// engaged has the clusters that are announced; nil after the end.
	engaged map[string]*engagement
	// leaving counts the functions that are called when a cluster's context ends.
	leaving sync.WaitGroup
	// replaced counts the clusters whose name was engaged again for another.
	replaced int
}

// engagement is the time from a cluster's announcement to the end of its context.
type engagement struct {
	cluster cluster.Cluster
	// stop makes the end of the context go unheard. It returns false if that is too late.
	stop func() bool
}

// Engage implements [peer.Aware]. It announces a cluster until ctx ends.
func (a *aware) Engage(ctx context.Context, clusterName peer.ClusterName, c cluster.Cluster) error {
	name := clusterName.String()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.engaged == nil {
		return fmt.Errorf("engage cluster %q: its provider has ended", name)
	}
	before := a.engaged[name]
	if before != nil && before.cluster == c {
		return nil
	}
	announcement := multicluster.Announcement{Name: name, Config: c.GetConfig()}
	if before != nil {
		a.replaced++
		announcement.Identity = fmt.Sprint("replacement ", a.replaced)
	}
	if err := a.fleet.Join(announcement); err != nil {
		return fmt.Errorf("engage cluster %q: %w", name, err)
	}
	if before != nil {
		a.forget(before)
	}
	e := &engagement{cluster: c}
	a.engaged[name] = e
	a.leaving.Add(1)
	e.stop = context.AfterFunc(ctx, func() { a.leave(name, e) })
	return nil
}

// leave ends an engagement whose context has ended.
func (a *aware) leave(name string, e *engagement) {
	defer a.leaving.Done()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.engaged[name] != e {
		return
	}
	select {
	case <-a.stopping:
		return
	default:
	}
	delete(a.engaged, name)
	a.fleet.Leave(name)
}

// forget ends an engagement without the cluster leaving.
func (a *aware) forget(e *engagement) {
	if e.stop() {
		a.leaving.Done()
	}
}

// end forgets all clusters and waits for what still runs.
func (a *aware) end() {
	a.mu.Lock()
	for _, e := range a.engaged {
		a.forget(e)
	}
	a.engaged = nil
	a.mu.Unlock()
	a.leaving.Wait()
}

// NewManager is mcmanager.New with Flyball's manager as the local one. The provider may be nil.
//
// Errors: those of controllerruntime.NewManager and of mcmanager.WithMultiCluster.
func NewManager(config *rest.Config, provider peer.Provider, o manager.Options, more ...mcmanager.Option,
) (mcmanager.Manager, error) {
	local, err := controllerruntime.NewManager(config, o)
	if err != nil {
		return nil, err
	}
	return mcmanager.WithMultiCluster(local, provider, more...)
}

// NewCluster is cluster.New with [Parts]. Options that come later win.
func NewCluster(config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
	return cluster.New(config, append([]cluster.Option{Parts}, opts...)...)
}

// Parts is a cluster.Option that gives a cluster Flyball's cache and client.
func Parts(o *cluster.Options) {
	o.NewCache, o.NewClient = controllerruntime.NewCache, controllerruntime.NewClient
}

// NewQueue is for the NewQueue of a controller's options. The queue takes one request of each cluster in turn.
func NewQueue(controller string, limiter workqueue.TypedRateLimiter[mcreconcile.Request],
) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
	return controllerruntime.NewQueueWithOrder(controller, limiter,
		own.NewFairOrder(own.FairOptions[mcreconcile.Request]{
			Group: func(r mcreconcile.Request) string { return r.ClusterName.String() },
		}))
}
