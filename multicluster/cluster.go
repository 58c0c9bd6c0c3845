package multicluster

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// Cluster is one incarnation of a cluster. Its embedded client reads from the cluster's caches and sees its own writes.
// After the incarnation has ended, every request fails with [ErrClusterGone].
//
// Concurrency: all methods may be called at any time.
type Cluster struct {
	*client.Cluster
	config      *rest.Config
	informers   *informer.Factory
	info        atomic.Pointer[ClusterInfo]
	incarnation *incarnation

	recorders   recorders
	reconcilers reconcilers
}

// ClusterOf returns the cluster of a manager in the form that a fleet's reconcilers use. Its name is "", and it is
// always Live.
func ClusterOf(m *manager.Manager) *Cluster {
	if m == nil {
		panic("multicluster: ClusterOf: the manager is nil; make one with manager.New")
	}
	local := newIncarnation(LocalCluster, "local", nil)
	local.current = Live
	local.cluster = &Cluster{
		Cluster: m.GetClient(), config: m.GetConfig(), informers: m.Informers(), incarnation: local,
	}
	local.cluster.info.Store(&ClusterInfo{})
	local.cluster.recorders.recorderFor = m.GetEventRecorderFor
	return local.cluster
}

// recorders has the event recorders of a cluster. It starts the sender of events when the first recorder is needed,
// because most clusters need none.
type recorders struct {
	mu sync.Mutex
	// recorderFor returns the recorder of a component; nil until the sender is started.
	recorderFor func(component string) events.Recorder
	// start starts the sender and returns recorderFor.
	start func() func(component string) events.Recorder
}

// Name returns the name that the cluster was announced with, "" for the local one.
func (c *Cluster) Name() string { return c.info.Load().Name }

// Info returns the cluster's name, identity and labels as announced last.
func (c *Cluster) Info() ClusterInfo { return *c.info.Load() }

// Labels returns a copy of the labels announced last.
func (c *Cluster) Labels() map[string]string { return maps.Clone(c.info.Load().Labels) }

// Config returns a copy of the config of the cluster's clients. Other clients can be made from it, such as client-go's
// clientset by kubernetes.NewForConfig. Their requests, too, fail after the incarnation has ended.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Informers returns the caches of the cluster.
func (c *Cluster) Informers() *informer.Factory { return c.informers }

// Recorder returns a recorder of events in the cluster, for a component.
func (c *Cluster) Recorder(component string) events.Recorder {
	c.recorders.mu.Lock()
	defer c.recorders.mu.Unlock()
	if c.recorders.recorderFor == nil {
		c.recorders.recorderFor = c.recorders.start()
	}
	return c.recorders.recorderFor(component)
}

// State returns the cluster's current state.
func (c *Cluster) State() State { return c.incarnation.state() }

// Err returns nil while the cluster is Live, and otherwise why it cannot be used.
func (c *Cluster) Err() error { return c.incarnation.unusable() }

// clustersInUse are the clusters that a running reconcile uses: that of its request, and others that it asked for. The
// reconcile's context carries them.
type clustersInUse struct {
	fleet *Manager
	// incarnation and name are those of the request's cluster. incarnation is nil when the cluster has departed.
	incarnation *incarnation
	name        string
	// cancel ends the reconcile's context.
	cancel context.CancelCauseFunc

	mu sync.Mutex
	// others are the other clusters that the reconcile asked for, by name. They stay until the reconcile ends or is
	// cancelled. leave has a function for each, which releases it.
	others map[string]*incarnation
	leave  []func()
}

type clustersInUseKey struct{}

func clustersInUseFrom(ctx context.Context) *clustersInUse {
	u, _ := ctx.Value(clustersInUseKey{}).(*clustersInUse)
	return u
}

type clusterKey struct{}

// ClusterFromContext returns the cluster of a reconcile's request, or of a handler's event. ok is false when ctx is not
// the context of a reconcile or a handler, and when the request's cluster has departed (see [Builder.ReportGone]).
func ClusterFromContext(ctx context.Context) (c *Cluster, ok bool) {
	c, ok = ctx.Value(clusterKey{}).(*Cluster)
	return c, ok
}

// WithCluster returns a context from which [ClusterFromContext] returns c. It is meant for tests of reconcilers.
func WithCluster(ctx context.Context, c *Cluster) context.Context {
	return context.WithValue(ctx, clusterKey{}, c)
}

// end releases the other clusters when the reconcile has returned.
func (u *clustersInUse) end() {
	u.mu.Lock()
	leave := u.leave
	u.leave = nil
	u.mu.Unlock()
	for _, f := range leave {
		f()
	}
}

// other returns another cluster than the request's. For the same name it returns the same incarnation each time.
func (u *clustersInUse) other(name string, find func() (*incarnation, error)) (*Cluster, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if inc := u.others[name]; inc != nil {
		return inc.usable()
	}
	inc, err := find()
	if err != nil {
		return nil, err
	}
	leave, err := inc.enter(u.cancel)
	if err != nil {
		return nil, err
	}
	if u.others == nil {
		u.others = map[string]*incarnation{}
	}
	u.others[name] = inc
	u.leave = append(u.leave, leave)
	return inc.cluster, nil
}
