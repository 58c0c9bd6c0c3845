package multicluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/manager"
)

// Manager is a fleet: the clusters that its providers announce, and the controllers that work on them. See the package
// comment.
//
// The Manager and each of its controllers are runnables of the local manager, which starts, stops and measures them
// like the controllers of a single cluster.
type Manager struct {
	options Options
	local   *manager.Manager
	scheme  *runtime.Scheme
	// kinds maps Go types to kinds. It is a client that never sends a request.
	kinds *client.Cluster
	// localCluster is the cluster of the local manager, which never leaves.
	localCluster *incarnation

	incarnations atomic.Uint64
	dropped      atomic.Uint64

	mu sync.Mutex
	// names has the records of the names in the fleet. Invariant: while the fleet runs, each has a goroutine.
	names       map[string]*clusterName
	announcers  []*announcer
	controllers []*Controller
	indexes     []index
	counts      counts
	// start starts the goroutine of a name. Invariant: it is non-nil while the fleet runs, and only then.
	start func(*clusterName)
	ran   bool
}

// index has the arguments of one call of IndexField.
type index struct {
	object  client.Object
	field   string
	extract func(client.Object) []string
}

// New makes a fleet and adds it to the local manager, which runs it. New starts nothing and sends no request.
//
// Errors: invalid options; a name that the manager already has.
func New(local *manager.Manager, o Options) (*Manager, error) {
	if local == nil {
		return nil, errors.New("fleet: the local manager is nil; make one with manager.New")
	}
	o = o.withDefaults()
	m := &Manager{
		options: o, local: local, scheme: cmp.Or(o.Scheme, local.GetScheme()),
		names:  map[string]*clusterName{},
		counts: newCounts(),
	}
	if o.MinLive < 0 || o.MinLive > 1 {
		return nil, fmt.Errorf("fleet %s: MinLive is %v; want a share of the clusters, from 0 to 1", o.Name, o.MinLive)
	}
	for i, p := range o.Providers {
		if misuse.IsNil(p) {
			return nil, fmt.Errorf("fleet %s: Providers[%d] is nil", o.Name, i)
		}
		m.announcers = append(m.announcers, newAnnouncer(m, p))
	}
	m.localCluster = ClusterOf(local).incarnation
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("fleet %s: %w", o.Name, err)
	}
	if err := local.Add(m); err != nil {
		return nil, fmt.Errorf("fleet %s: %w", o.Name, err)
	}
	return m, nil
}

// check reports mistakes in Options.Caches before any cluster joins.
func (m *Manager) check() (err error) {
	for i, cache := range m.options.Caches {
		if misuse.IsNil(cache.Object) {
			return fmt.Errorf("Options.Caches[%d]: the object is nil; give an empty one, like &corev1.Pod{}", i)
		}
	}
	m.kinds, err = client.New(&rest.Config{Host: "http://nowhere"},
		client.Options{Scheme: m.scheme, Caches: m.options.Caches})
	return err
}

// Name returns the fleet's name in the local manager.
func (m *Manager) Name() string { return m.options.Name }

// NeedLeaderElection reports whether clusters join only while this process leads.
func (m *Manager) NeedLeaderElection() bool { return m.options.OnlyLeader }

// Local returns the manager of the local cluster. Runnables that do not belong to any one cluster are added to it.
func (m *Manager) Local() *manager.Manager { return m.local }

// Scheme returns the scheme of all clusters.
func (m *Manager) Scheme() *runtime.Scheme { return m.scheme }

// GetCluster returns a Live cluster. The local cluster, whose name is "", is always Live. GetCluster never waits.
//
// In a reconcile, the name of the request's cluster means the incarnation that the reconcile began with. It can be used
// even while it drains; once it has departed, the error is ErrClusterGone, even if another cluster has the name by
// then. If a reconcile gets a second cluster, that incarnation, too, stays until the reconcile returns or is cancelled.
//
// Errors: [ErrClusterNotFound], [ErrClusterNotLive], [ErrClusterGone].
func (m *Manager) GetCluster(ctx context.Context, name string) (*Cluster, error) {
	u := clustersInUseFrom(ctx)
	switch {
	case u == nil || u.fleet != m:
		inc, err := m.incarnation(name)
		if err != nil {
			return nil, err
		}
		if err := inc.unusable(); err != nil {
			return nil, err
		}
		return inc.cluster, nil
	case name != u.name:
		return u.other(name, func() (*incarnation, error) { return m.incarnation(name) })
	case u.incarnation == nil:
		return nil, &clusterError{Cluster: name, State: Gone, Err: ErrClusterGone}
	}
	return u.incarnation.usable()
}

// incarnation returns the incarnation that has the name now.
func (m *Manager) incarnation(name string) (*incarnation, error) {
	if name == LocalCluster {
		return m.localCluster, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[name]
	switch {
	case n == nil:
		return nil, &clusterError{Cluster: name, State: Gone, Err: ErrClusterNotFound}
	case n.incarnation == nil:
		return nil, &clusterError{Cluster: name, State: n.state, Reason: n.reason, Err: ErrClusterNotLive}
	}
	return n.incarnation, nil
}

// IndexField adds an index to the caches of obj's kind, so that cached lists can select by client.MatchingFields with
// that field. It applies to all clusters: the local one, those in the fleet, and those that join later. extract returns
// the values of an object.
//
// Errors: informer.ErrIndexExists; another error when the kind is not cached.
func (m *Manager) IndexField(ctx context.Context, obj client.Object, field string,
	extract func(client.Object) []string,
) error {
	if err := m.localCluster.cluster.IndexField(ctx, obj, field, extract); err != nil {
		return err
	}
	m.mu.Lock()
	m.indexes = append(m.indexes, index{obj, field, extract})
	incarnations := m.incarnationsLocked()
	m.mu.Unlock()
	var errs []error
	for _, inc := range incarnations {
		if err := inc.cluster.IndexField(ctx, obj, field, extract); err != nil &&
			!errors.Is(err, informer.ErrIndexExists) {
			errs = append(errs, fmt.Errorf("cluster %q: %w", inc.name, err))
		}
	}
	return errors.Join(errs...)
}

func (m *Manager) incarnationsLocked() (incarnations []*incarnation) {
	for _, n := range m.names {
		if n.incarnation != nil {
			incarnations = append(incarnations, n.incarnation)
		}
	}
	return incarnations
}

// Run joins the clusters that the providers announce until ctx is done. It then drains them, as the local manager
// drains its controllers, and returns when all are gone. Only the local manager may call Run, once.
func (m *Manager) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "fleet", m.options.Name))
	work, release := workctx.From(ctx, max(m.options.DrainTimeout, 0))
	defer release()
	serving, endServing := context.WithCancel(context.WithoutCancel(ctx)) // Ends after Owner.Leave.
	defer endServing()
	var names, providers, owner sync.WaitGroup
	if !m.beginRun(func(n *clusterName) { names.Go(func() { n.run(serving, work) }) }) {
		return fmt.Errorf("fleet %s: run: %w", m.options.Name, manager.ErrStopped)
	}
	owning, endOwner := context.WithCancel(context.WithoutCancel(ctx))
	defer endOwner()
	if m.options.Owner != nil {
		owner.Go(func() { m.runOwner(owning) })
	}
	for _, a := range m.announcers {
		providers.Go(func() { a.run(ctx) })
	}
	<-ctx.Done()
	m.stopStarting()
	if m.options.Owner != nil {
		m.options.Owner.Leave()
	}
	endServing()
	providers.Wait()
	names.Wait()
	endOwner()
	owner.Wait()
	return nil
}

// beginRun stores start. It returns false if the fleet has run already.
func (m *Manager) beginRun(start func(*clusterName)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ran {
		return false
	}
	m.ran, m.start = true, start
	return true
}

// stopStarting makes the fleet ignore further announcements.
func (m *Manager) stopStarting() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start = nil
}

// runOwner runs the owner. When the owner fails, runOwner runs it again, with backoff.
func (m *Manager) runOwner(ctx context.Context) {
	retry := newBackoff(m.options.JoinBackoff)
	for {
		err := m.options.Owner.Run(ctx)
		if ctx.Err() != nil || err == nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Owner failed; restarting it")
		if !retry.wait(ctx) {
			return
		}
	}
}

// admit publishes an incarnation: from now on GetCluster finds it, and controllers hold requests for it.
func (m *Manager) admit(n *clusterName, inc *incarnation) {
	inc.setState(Joining, "connecting")
	m.mu.Lock()
	n.incarnation = inc
	if n.wanted != nil {
		inc.cluster.info.Store(&ClusterInfo{Name: n.name, Identity: n.wanted.Identity, Labels: n.wanted.Labels})
	}
	indexes := slices.Clone(m.indexes)
	m.mu.Unlock()
	for _, index := range indexes {
		// The only error left is that the index exists: IndexField checked the kind, and may have added the index after
		// the incarnation was published.
		_ = inc.cluster.IndexField(context.Background(), index.object, index.field, index.extract)
	}
	m.tellControllers((*Controller).admit, inc)
}

// tellControllers calls do for each controller with a cluster.
func (m *Manager) tellControllers(do func(*Controller, *incarnation), inc *incarnation) {
	m.mu.Lock()
	controllers := slices.Clone(m.controllers)
	m.mu.Unlock()
	for _, c := range controllers {
		do(c, inc)
	}
}
