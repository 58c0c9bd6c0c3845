package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

// LeaderElection configures the lease that runnables wait for. The zero value is off.
type LeaderElection struct {
	Enabled bool
	// Namespace and Name are those of the Lease, which all replicas of one operator share and no other operator has. An empty
	// Namespace means "kube-system"; Name is required when Enabled, and is best a domain: "greeter.example.com".
	Namespace, Name string
	// Identity names this process in the lease. Empty means the host's name and a random part.
	Identity string
	// Options holds the times: 15 s, 10 s and 2 s.
	leader.Options
	// WarmUp is how long the caches are waited for before this process becomes a candidate: a leader with warm caches
	// works at once. Zero means 30 s, after which it is a candidate all the same; negative: not at all.
	WarmUp time.Duration
	// Survive makes a process that lost the lease a follower again, with warm caches, when all guarded work has returned
	// in time; a process that embeds the manager beside other things wants it. Runnables that need leadership must then be
	// [Rebuilder]s. Without it, and when work does not return, the loss ends Run.
	Survive bool
	// NewLock makes a lock of another kind than the Lease of Namespace and Name, which then only stand in reports; recorder records
	// events about its object. Nil: that Lease.
	NewLock func(recorder resourcelock.EventRecorder) (resourcelock.Interface, error)
	// After keeps this process from being a candidate until it is closed. Nil: nothing does.
	After <-chan struct{}
}

// validate reports what is missing, and what the server would say of the lease's name, before anything runs.
func (l LeaderElection) validate() error {
	if l.NewLock != nil {
		return nil // Whoever makes the lock knows its name.
	}
	if l.Name == "" {
		return errors.New(`leader election: the lease has no name: set LeaderElection.Name to one that all replicas of this operator share and no other operator has, for example "greeter.example.com"`)
	}
	if wrong := validation.IsDNS1123Label(l.Namespace); len(wrong) > 0 {
		return fmt.Errorf("leader election: the namespace %q of the lease: %s", l.Namespace, strings.Join(wrong, ", "))
	}
	if wrong := validation.IsDNS1123Subdomain(l.Name); len(wrong) > 0 {
		return fmt.Errorf("leader election: the name %q of the lease: %s", l.Name, strings.Join(wrong, ", "))
	}
	return nil
}

const defaultWarmUp = 30 * time.Second

func (l LeaderElection) withDefaults() LeaderElection {
	if l.Namespace == "" {
		l.Namespace = "kube-system"
	}
	if l.WarmUp == 0 {
		l.WarmUp = defaultWarmUp
	}
	return l
}

// election is the manager's part in an election.
type election struct {
	options LeaderElection
	lock    resourcelock.Interface
	elector *leader.Elector
	events  *leaseEvents
	// campaigns says that this process is, or was, a candidate: before that it waits for its caches.
	campaigns atomic.Bool
	// finished receives, once, whether guarded work has returned: then the lease is released. Capacity 1, so that it can be
	// sent also when nobody leads.
	finished chan error
}

func newElection(config *rest.Config, o LeaderElection, recorder events.Recorder) (*election, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	recording := &leaseEvents{recorder: recorder}
	lock, err := o.newLock(config, recording)
	if err != nil {
		return nil, err
	}
	recording.identity = lock.Identity()
	elector, err := leader.New(lock, o.Options)
	if err != nil {
		return nil, err
	}
	return &election{options: o, lock: lock, elector: elector, events: recording, finished: make(chan error, 1)}, nil
}

func (l LeaderElection) newLock(config *rest.Config, recorder resourcelock.EventRecorder) (resourcelock.Interface, error) {
	if l.NewLock != nil {
		return l.NewLock(recorder)
	}
	if l.Identity == "" {
		var err error
		if l.Identity, err = leader.Identity(); err != nil {
			return nil, err
		}
	}
	return leader.NewLeaseLock(config, l.Namespace, l.Name, resourcelock.ResourceLockConfig{Identity: l.Identity, EventRecorder: recorder})
}

// lead warms caches and controllers, campaigns, and while this process leads lets the runnables run that wait for it. It returns when the
// lease is released, or lost if that is the end, or when intake ends before an election.
func (m *Manager) lead(intake, work context.Context, stop context.CancelCauseFunc) error {
	if after := m.election.options.After; after != nil {
		select {
		case <-after:
		case <-intake.Done():
			return nil
		}
	}
	m.runnables.warmUp(m.warmer(intake, stop))
	m.warmUp(intake)
	m.election.campaigns.Store(true)
	klog.FromContext(intake).Info("Runnables wait for the leader lease", "lease", m.election.lock.Describe(), "runnables", m.runnables.namesOf(withLeader))
	for {
		err := m.serveTenure(intake, work, stop)
		if !m.survives() || intake.Err() != nil || !errors.Is(err, leader.ErrLost) {
			return err
		}
		if err := m.renewGuarded(); err != nil {
			stop(err)
			return nil
		}
		klog.FromContext(intake).Info("Following again")
	}
}

// serveTenure campaigns once, and runs what needs leadership for one tenure.
func (m *Manager) serveTenure(intake, work context.Context, stop context.CancelCauseFunc) error {
	return m.election.elector.Run(intake, func(tenure context.Context) error {
		// Both contexts end at the latest with the tenure; and no write begins with either when the elector says no.
		ledIntake, endIntake := context.WithCancel(leader.WithFence(intake, m.election.elector.Check))
		defer endIntake()
		ledWork, endWork := context.WithCancel(work)
		defer endWork()
		over := make(chan struct{}) // closed by the function below when the tenure has ended; nobody sends
		defer context.AfterFunc(tenure, func() {
			if !m.survives() {
				stop(context.Cause(tenure))
			}
			endWork()
			endIntake()
			close(over)
		})()
		m.runnables.open(withLeader, starter(ledIntake, ledWork, stop))
		select {
		case err := <-m.election.finished:
			return err
		case <-over:
		}
		if m.survives() {
			err := m.standDown()
			if err == nil {
				return nil
			}
			stop(fmt.Errorf("%w; %w", context.Cause(tenure), err))
		}
		return <-m.election.finished
	})
}

// survives says whether the manager goes on when the lease is lost.
func (m *Manager) survives() bool { return m.election != nil && m.election.options.Survive }

// standDown waits until all guarded work, which is cancelled, has returned.
//
// Errors: when it has not before another process may lead: then this one must end.
func (m *Manager) standDown() error {
	m.runnables.hold(withLeader)
	m.election.recordEnd()
	guarded := m.runnables.activeWith(withLeader)
	if left := wait(guarded, m.options.LeaderElection.Margin()); len(left) > 0 {
		return fmt.Errorf("still running: %s", describe(left))
	}
	for _, e := range guarded {
		if stuck := (*reconcile.StuckError)(nil); errors.As(e.err, &stuck) {
			return stuck
		}
	}
	return nil
}

// renewGuarded makes anew what ran in the tenure that is over.
func (m *Manager) renewGuarded() error {
	for _, old := range m.runnables.claimEnded(withLeader) { // who removes or restarts one meanwhile does that
		if err := m.renew(old); err != nil {
			return err
		}
	}
	return nil
}

// renew makes a runnable anew that has ended, and runs it when those of its leadership do.
func (m *Manager) renew(old *entry) error {
	again, ok := old.runnable.(Rebuilder)
	if !ok {
		return fmt.Errorf("%s cannot be built again", old.name)
	}
	next, err := again.Rebuild()
	if err != nil {
		return fmt.Errorf("build %s again: %w", old.name, err)
	}
	fresh := newEntry(next)
	fresh.name, fresh.needs = old.name, old.needs
	m.runnables.renew(old, fresh)
	m.measure(fresh)
	return nil
}

// warmUp waits for the caches, but not for ever: one that cannot be filled should not keep the others from their work.
func (m *Manager) warmUp(ctx context.Context) {
	if m.election.options.WarmUp < 0 {
		return
	}
	patience, cancel := context.WithTimeout(ctx, m.election.options.WarmUp)
	defer cancel()
	if err := m.informers.WaitForSync(patience); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Campaigning without warm caches")
	}
}

// handOver lets the elector release the lease, unless guarded work still runs, and returns how that ended.
func (e *election) handOver(campaign *part, workRemains bool) error {
	var result error
	if workRemains {
		result = fmt.Errorf("%w: lease %s runs out by itself", leader.ErrWorkRemains, e.lock.Describe())
	}
	e.finished <- result
	return campaign.end(e.options.ReleaseTimeout() + partTimeout)
}

// recordEnd records that this process led and does no more.
func (e *election) recordEnd() { e.events.recordEnd() }

// leaseEvents records events about the lease, and remembers the lease for the last of them.
type leaseEvents struct {
	recorder events.Recorder
	identity string // set before the first event

	mu    sync.Mutex
	lease runtime.Object // nil: never led
}

// Eventf implements resourcelock.EventRecorder.
func (l *leaseEvents) Eventf(lease runtime.Object, eventType, reason, message string, args ...any) {
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
	l.recorder.Eventf(lease, eventType, reason, message, args...)
}

// recordEnd records it before events are drained, which is before the lease is released.
//
// Source: client-go v0.37.2 tools/leaderelection/resourcelock/leaselock.go.
func (l *leaseEvents) recordEnd() {
	l.mu.Lock()
	lease := l.lease
	l.mu.Unlock()
	if lease != nil {
		l.recorder.Eventf(lease, corev1.EventTypeNormal, "LeaderElection", "%s stopped leading", l.identity)
	}
}
