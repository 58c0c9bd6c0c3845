package multicluster

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// Cluster is one incarnation of a cluster: a client that reads from the cluster's caches and sees what it wrote, and
// what the client is made of. It ends with the incarnation: after that every request fails with [ErrClusterGone].
//
// Concurrency: all methods may be called at any time.
type Cluster struct {
	*client.Cluster
	config      *rest.Config
	informers   *informer.Factory
	info        atomic.Pointer[ClusterInfo]
	incarnation *incarnation

	clientset   func() (kubernetes.Interface, error)
	recorders   recorders
	reconcilers reconcilers
}

// ClusterOf is the cluster of a manager as a fleet sees it: with no name, and always Live.
func ClusterOf(m *manager.Manager) *Cluster {
	if m == nil {
		panic("multicluster: ClusterOf: the manager is nil; make one with manager.New")
	}
	local := newIncarnation(LocalCluster, "local", nil)
	local.now = Live
	local.cluster = &Cluster{
		Cluster: m.GetClient(), config: m.GetConfig(), informers: m.Informers(), incarnation: local,
	}
	local.cluster.info.Store(&ClusterInfo{})
	local.cluster.clientset = func() (kubernetes.Interface, error) { return m.Client(), nil }
	local.cluster.recorders.of = m.GetEventRecorderFor
	return local.cluster
}

// recorders begins to send events when somebody has one to record.
type recorders struct {
	mu sync.Mutex
	// of makes recorders; nil before the first.
	of func(component string) events.Recorder
	// start begins to send.
	start func() func(component string) events.Recorder
}

// Name is what the cluster was announced as; "" is the local one.
func (c *Cluster) Name() string { return c.info.Load().Name }

// Info is what the cluster is known by at the moment.
func (c *Cluster) Info() ClusterInfo { return *c.info.Load() }

// Labels are those announced last. They are the caller's.
func (c *Cluster) Labels() map[string]string { return maps.Clone(c.info.Load().Labels) }

// Config is what the clients are made of, for further ones of one's own. Their requests end with the cluster, too.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Informers are the caches of the cluster.
func (c *Cluster) Informers() *informer.Factory { return c.informers }

// Clientset reads from and writes to the API server directly.
//
// Errors: a config that no client can be made of.
func (c *Cluster) Clientset() (kubernetes.Interface, error) { return c.clientset() }

// Recorder records events in the cluster, in the name of a component.
func (c *Cluster) Recorder(component string) events.Recorder {
	c.recorders.mu.Lock()
	defer c.recorders.mu.Unlock()
	if c.recorders.of == nil {
		c.recorders.of = c.recorders.start()
	}
	return c.recorders.of(component)
}

// State is where the cluster is in its life.
func (c *Cluster) State() State { return c.incarnation.state() }

// Err is nil while the cluster is Live, and else says why it cannot be used.
func (c *Cluster) Err() error { return c.incarnation.unusable() }

// use is what the context of a reconcile knows about clusters.
type use struct {
	fleet *Manager
	// incarnation is the request's; it is nil when the request's cluster has departed, and name then says which that
	// was.
	incarnation *incarnation
	name        string
	// cancel ends the reconcile's context.
	cancel context.CancelCauseFunc

	mu sync.Mutex
	// others are further clusters that the reconcile asked for: they do not end before it does.
	others map[string]*incarnation
	leave  []func()
}

type useKey struct{}

func useFrom(ctx context.Context) *use {
	u, _ := ctx.Value(useKey{}).(*use)
	return u
}

type clusterKey struct{}

// ClusterFromContext returns the cluster that a reconcile's request is about, or whose event a handler hears of. ok
// is false when ctx is of neither, and when the request's cluster has departed (see [Builder.ReportGone]).
func ClusterFromContext(ctx context.Context) (c *Cluster, ok bool) {
	c, ok = ctx.Value(clusterKey{}).(*Cluster)
	return c, ok
}

// WithCluster returns a context of c, for a reconciler's tests: [ClusterFromContext] finds it.
func WithCluster(ctx context.Context, c *Cluster) context.Context {
	return context.WithValue(ctx, clusterKey{}, c)
}

// end lets go of all clusters of a reconcile that has returned.
func (u *use) end() {
	u.mu.Lock()
	leave := u.leave
	u.leave = nil
	u.mu.Unlock()
	for _, f := range leave {
		f()
	}
}

// other returns a further cluster for a reconcile, the same one each time.
func (u *use) other(name string, find func() (*incarnation, error)) (*Cluster, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m := u.others[name]; m != nil {
		return m.usable()
	}
	m, err := find()
	if err != nil {
		return nil, err
	}
	leave, err := m.enter(u.cancel)
	if err != nil {
		return nil, err
	}
	if u.others == nil {
		u.others = map[string]*incarnation{}
	}
	u.others[name] = m
	u.leave = append(u.leave, leave)
	return m.cluster, nil
}
