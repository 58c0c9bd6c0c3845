package multiclusterruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	peer "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/flyball-dev/flyball/multicluster"
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
