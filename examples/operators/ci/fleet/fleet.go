package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// Options configure a [Fleet].
type Options struct {
	// Hub is the name of the main cluster.
	Hub string
	// Manager are the options of the hub's manager. The managers of the build clusters share only its cache options.
	Manager manager.Options
	// DryRun makes every client discard its writes.
	DryRun bool
	// HubResync is the interval at which all of the hub's objects are reconciled again. Zero means never.
	HubResync time.Duration
}

// Cluster is one cluster of a fleet.
type Cluster struct {
	Name    string
	Manager *manager.Manager
	// Client reads from the manager's caches. It writes, unless DryRun is set.
	Client client.Client
}

// Fleet is the clusters of a process.
type Fleet struct {
	Hub *Cluster
	// Builds are the build clusters, sorted by name.
	Builds []*Cluster
}

// New makes the managers of all clusters. It sends no request; [Fleet.Run] does.
//
// Errors: no hub; configurations from which no client can be made.
func New(configs map[string]*rest.Config, o Options) (*Fleet, error) {
	if configs[o.Hub] == nil {
		return nil, fmt.Errorf("there is no cluster %q among %q", o.Hub, slices.Sorted(maps.Keys(configs)))
	}
	o.Manager.Informers.Scheme = api.NewScheme()
	hubOptions := o.Manager
	hubOptions.Informers.Resync = o.HubResync
	hub, err := newCluster(o.Hub, configs[o.Hub], hubOptions, o.DryRun)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Hub: hub}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if name == o.Hub {
			continue
		}
		// A build cluster that does not answer must not end the process, so the process does not wait for it.
		c, err := newCluster(name, configs[name], manager.Options{
			Informers: o.Manager.Informers, Caches: o.Manager.Caches, GracefulTimeout: o.Manager.GracefulTimeout,
			ServerTimeout: -1,
		}, o.DryRun)
		if err != nil {
			return nil, err
		}
		if err := hub.Manager.Add(member{c}); err != nil {
			return nil, err
		}
		f.Builds = append(f.Builds, c)
	}
	return f, nil
}

func newCluster(name string, config *rest.Config, o manager.Options, dryRun bool) (*Cluster, error) {
	o.Client.DryRun = dryRun
	m, err := manager.New(config, o)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	return &Cluster{Name: name, Manager: m, Client: m.GetClient()}, nil
}

// All returns the clusters, the hub first.
func (f *Fleet) All() []*Cluster { return append([]*Cluster{f.Hub}, f.Builds...) }

// Run runs all clusters until ctx is done.
func (f *Fleet) Run(ctx context.Context) error { return f.Hub.Manager.Run(ctx) }

// Lookup returns the cluster of that name, or nil if there is none.
func (f *Fleet) Lookup(name string) *Cluster {
	for _, c := range f.All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// member is a build cluster's manager as a runnable of the hub's.
type member struct{ *Cluster }

// Name is the name in logs and health.
func (m member) Name() string { return "cluster-" + m.Cluster.Name }

// Run runs the cluster's manager.
func (m member) Run(ctx context.Context) error {
	if err := m.Manager.Run(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", m.Cluster.Name, err)
	}
	return nil
}

// Health returns why the cluster's manager is not ready, once it runs.
func (m member) Health() error { return m.Manager.Ready() }

// Late returns the source s without its start-up wait. It is for a cluster that may be unreachable, in a controller
// that works on other clusters as well.
func Late[K comparable](s reconcile.Source[K]) reconcile.Source[K] { return &late[K]{s} }

type late[K comparable] struct{ reconcile.Source[K] }

// Run implements reconcile.Source.
func (l *late[K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	synced()
	err := l.Source.Run(ctx, out, func() {})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
