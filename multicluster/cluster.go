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

// Cluster is one incarnation of a cluster: a client that reads from the cluster's caches and sees its own writes, and
// the parts that the client is made of. After the incarnation has ended, every request fails with [ErrClusterGone].
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

// ClusterOf returns the cluster of a manager as a fleet's reconcilers see it: its name is "", and it is always Live.
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
	local.cluster.recorders.of = m.GetEventRecorderFor
	return local.cluster
}

// recorders starts the sender of events when somebody first records one.
type recorders struct {
	mu sync.Mutex
	// of returns the recorder of a component; nil until the sender is started.
	of func(component string) events.Recorder
	// start starts the sender and returns of.
	start func() func(component string) events.Recorder
}

// Name returns the name that the cluster was announced with, "" for the local one.
func (c *Cluster) Name() string { return c.info.Load().Name }

// Info returns the cluster's name, identity and labels as announced last.
func (c *Cluster) Info() ClusterInfo { return *c.info.Load() }

// Labels returns a copy of the labels announced last.
func (c *Cluster) Labels() map[string]string { return maps.Clone(c.info.Load().Labels) }

// Config returns a copy of the config that the cluster's clients are made of, for clients of one's own, such as
// client-go's clientset by kubernetes.NewForConfig. Their requests fail after the incarnation has ended, too.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Informers returns the caches of the cluster.
func (c *Cluster) Informers() *informer.Factory { return c.informers }

// Recorder returns a recorder of events in the cluster, for a component.
func (c *Cluster) Recorder(component string) events.Recorder {
	c.recorders.mu.Lock()
	defer c.recorders.mu.Unlock()
	if c.recorders.of == nil {
		c.recorders.of = c.recorders.start()
	}
	return c.recorders.of(component)
}

// State returns the cluster's current state.
func (c *Cluster) State() State { return c.incarnation.state() }

// Err returns nil while the cluster is Live, and otherwise why it cannot be used.
func (c *Cluster) Err() error { return c.incarnation.unusable() }

// use is the part of a reconcile's context that concerns clusters.
type use struct {
	fleet *Manager
	// incarnation is the request's. It is nil when that has departed; name then still has the cluster's name.
	incarnation *incarnation
	name        string
	// cancel ends the reconcile's context.
	cancel context.CancelCauseFunc

	mu sync.Mutex
	// others are further clusters that the reconcile asked for. They do not end before the reconcile does.
	others map[string]*incarnation
	leave  []func()
}

type useKey struct{}

func useFrom(ctx context.Context) *use {
	u, _ := ctx.Value(useKey{}).(*use)
	return u
}

type clusterKey struct{}

// ClusterFromContext returns the cluster of a reconcile's request, or of the event that a handler is called for. ok is
// false when ctx belongs to neither, and when the request's cluster has departed (see [Builder.ReportGone]).
func ClusterFromContext(ctx context.Context) (c *Cluster, ok bool) {
	c, ok = ctx.Value(clusterKey{}).(*Cluster)
	return c, ok
}

// WithCluster returns a context in which [ClusterFromContext] finds c. It is meant for tests of reconcilers.
func WithCluster(ctx context.Context, c *Cluster) context.Context {
	return context.WithValue(ctx, clusterKey{}, c)
}

// end releases the clusters of a reconcile that has returned.
func (u *use) end() {
	u.mu.Lock()
	leave := u.leave
	u.leave = nil
	u.mu.Unlock()
	for _, f := range leave {
		f()
	}
}

// other returns a further cluster for a reconcile. It returns the same incarnation each time.
func (u *use) other(name string, find func() (*incarnation, error)) (*Cluster, error) {
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
