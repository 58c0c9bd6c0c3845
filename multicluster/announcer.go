package multicluster

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// announcer runs a provider, and remembers what it has announced.
type announcer struct {
	fleet    *Manager
	provider Provider
	name     string

	// Guarded by the fleet's lock.

	// round counts the provider's runs. synced reports whether this run, or one before, has announced all clusters.
	round  int
	synced bool
	// err is why the last run ended.
	err error
}

func newAnnouncer(m *Manager, p Provider) *announcer {
	a := &announcer{fleet: m, provider: p, name: fmt.Sprintf("%T", p)}
	if n, ok := p.(interface{ Name() string }); ok {
		a.name = n.Name()
	}
	return a
}

// run runs the provider until ctx is done, or the provider returns nil.
func (a *announcer) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "provider", a.name))
	again := newRetries(a.fleet.options.JoinBackoff)
	for {
		r := a.begin()
		err := a.provider.Run(ctx, r)
		r.close()
		if ctx.Err() != nil {
			return
		}
		a.ended(err)
		if err == nil {
			klog.FromContext(ctx).Info("Provider has no more to say")
			return
		}
		klog.FromContext(ctx).Error(err, "Provider failed, and is run again; its clusters stay")
		if !again.pause(ctx) {
			return
		}
	}
}

func (a *announcer) begin() *round {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	a.round++
	return &round{announcer: a, number: a.round}
}

// ended notes why a run ended. A provider that returns nil has announced all its clusters.
func (a *announcer) ended(err error) {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	a.err = err
	a.synced = a.synced || err == nil
}

// round is the [Fleet] of one run of a provider.
type round struct {
	announcer *announcer
	number    int

	mu     sync.Mutex
	closed bool
}

// close makes the fleet ignore all later calls of this run.
func (r *round) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// Join implements [Fleet].
func (r *round) Join(a Announcement) error {
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

func (m *Manager) join(r *round, a *Announcement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.start == nil {
		return nil // The process stops.
	}
	s := m.names[a.Name]
	if s == nil {
		s = newClusterName(m, r, a)
		m.names[a.Name] = s
		m.start(s)
		return nil
	}
	if s.want != nil && s.by != r.announcer {
		return fmt.Errorf("%w: %s", ErrNameTaken, s.by.name)
	}
	s.by, s.round = r.announcer, r.number
	was := s.want
	s.announceLocked(a)
	if s.incarnation == nil || was == nil || maps.Equal(was.Labels, a.Labels) || !sameCluster(s.serving, a) {
		return nil
	}
	s.incarnation.cluster.info.Store(&ClusterInfo{Name: a.Name, Identity: a.Identity, Labels: a.Labels})
	select {
	case s.relabeled <- struct{}{}:
	default:
	}
	return nil
}

// Leave implements [Fleet].
func (r *round) Leave(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.announcer.fleet
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.names[name]; !r.closed && s != nil && s.want != nil && s.by == r.announcer {
		s.announceLocked(nil)
	}
}

// Synced implements [Fleet].
func (r *round) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	m := r.announcer.fleet
	m.mu.Lock()
	defer m.mu.Unlock()
	r.announcer.synced, r.announcer.err = true, nil
	for _, s := range m.names {
		if s.by == r.announcer && s.round != r.number && s.want != nil {
			s.announceLocked(nil)
		}
	}
}
