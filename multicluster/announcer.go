package multicluster

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// announcer runs one provider.
type announcer struct {
	fleet    *Manager
	provider Provider
	name     string

	// Guarded by the fleet's lock.

	// runs counts the provider's runs. synced means that this run or an earlier one has announced all clusters.
	runs   int
	synced bool
	// err is the error of the last run; nil after Synced.
	err error
}

func newAnnouncer(m *Manager, p Provider) *announcer {
	return &announcer{fleet: m, provider: p, name: p.Name()}
}

// run runs the provider until ctx is done, or the provider returns nil.
func (a *announcer) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "provider", a.name))
	retry := newBackoff(a.fleet.options.JoinBackoff)
	for {
		r := a.beginRun()
		err := a.provider.Run(ctx, r)
		r.close()
		if ctx.Err() != nil {
			return
		}
		a.runEnded(err)
		if err == nil {
			klog.FromContext(ctx).Info("Provider has finished")
			return
		}
		klog.FromContext(ctx).Error(err, "Provider failed; restarting it, its clusters stay in the fleet")
		if !retry.wait(ctx) {
			return
		}
	}
}

func (a *announcer) beginRun() *providerRun {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	a.runs++
	return &providerRun{announcer: a, number: a.runs}
}

// runEnded records how a run ended. A provider that returns nil has announced all its clusters.
func (a *announcer) runEnded(err error) {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	a.err = err
	a.synced = a.synced || err == nil
}

// providerRun is the [Fleet] that one run of a provider receives.
type providerRun struct {
	announcer *announcer
	number    int

	mu     sync.Mutex
	closed bool
}

// close makes the fleet ignore all later calls of this run.
func (r *providerRun) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Join implements [Fleet].
func (r *providerRun) Join(a Announcement) error {
	if err := a.validate(); err != nil {
		return fmt.Errorf("join cluster %q: %w", a.Name, err)
	}
	a.Labels = maps.Clone(a.Labels)
	if a.Config != nil {
		a.Config = rest.CopyConfig(a.Config)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if err := r.announcer.fleet.join(r, &a); err != nil {
		return fmt.Errorf("join cluster %q: %w", a.Name, err)
	}
	return nil
}

func (m *Manager) join(r *providerRun, a *Announcement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.start == nil {
		return nil // The process stops.
	}
	n := m.names[a.Name]
	if n == nil {
		n = newClusterName(m, r, a)
		m.names[a.Name] = n
		m.start(n)
		return nil
	}
	if n.wanted != nil && n.announcedBy != r.announcer {
		return fmt.Errorf("%w: %s", ErrNameTaken, n.announcedBy.name)
	}
	n.announcedBy, n.announcedIn = r.announcer, r.number
	was := n.wanted
	n.announceLocked(a)
	if n.incarnation == nil || was == nil || maps.Equal(was.Labels, a.Labels) || !sameCluster(n.serving, a) {
		return nil
	}
	n.incarnation.cluster.info.Store(&ClusterInfo{Name: a.Name, Identity: a.Identity, Labels: a.Labels})
	select {
	case n.relabeled <- struct{}{}:
	default:
	}
	return nil
}

// Leave implements [Fleet].
func (r *providerRun) Leave(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.announcer.fleet
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.names[name]; !r.closed && n != nil && n.wanted != nil && n.announcedBy == r.announcer {
		n.announceLocked(nil)
	}
}

// Synced implements [Fleet].
func (r *providerRun) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	m := r.announcer.fleet
	m.mu.Lock()
	defer m.mu.Unlock()
	r.announcer.synced, r.announcer.err = true, nil
	for _, n := range m.names {
		if n.announcedBy == r.announcer && n.announcedIn != r.number && n.wanted != nil {
			n.announceLocked(nil)
		}
	}
}
