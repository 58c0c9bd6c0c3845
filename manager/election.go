package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

// LeaderElection configures the lease that runnables wait for. The zero value is off.
type LeaderElection struct {
	Enabled bool
	// Namespace and Name identify the Lease. All replicas of one operator must share it, and no other operator may use
	// it. An empty Namespace means "kube-system". Name is required if Enabled is set, and is best a domain:
	// "greeter.example.com".
	Namespace, Name string
	// Identity names this process in the lease. Empty means the host name followed by a random suffix.
	Identity string
	// Options holds the durations, by default 15 s, 10 s and 2 s.
	leader.Options
	// WarmUp is how long this process waits for its caches before it becomes a candidate. A leader with warm caches can
	// work at once. After that time the process becomes a candidate even with cold caches. Zero means 30 s; negative
	// means that it does not wait.
	WarmUp time.Duration
	// Survive makes this process a follower again after it has lost the lease, with warm caches, provided that all
	// guarded work returns in time. Use it in a process that also does other work than the manager's. Runnables that
	// need leadership must then be [Rebuilder]s. Without Survive, or if work does not return, a lost lease ends Run.
	Survive bool
	// NewLock returns a lock other than the Lease of Namespace and Name, which are then used only in reports. recorder
	// records events about the lock's object. Nil means that Lease.
	NewLock func(recorder events.Recorder) (leader.Lock, error)
	// After delays the candidacy of this process until the channel is closed. Nil means no delay.
	After <-chan struct{}
}

// validate checks the names as the API server would, before anything runs.
func (l LeaderElection) validate() error {
	if l.NewLock != nil {
		return nil // NewLock names its own object.
	}
	if l.Name == "" {
		return errors.New(
			"leader election: the lease has no name: set LeaderElection.Name to one that all replicas of this " +
				`operator share and no other operator has, for example "greeter.example.com"`,
		)
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
	l.Namespace = cmp.Or(l.Namespace, "kube-system")
	l.WarmUp = cmp.Or(l.WarmUp, defaultWarmUp)
	return l
}

// election is the state of a manager's leader election.
type election struct {
	options LeaderElection
	lock    leader.Lock
	elector *leader.Elector
	events  *leaseEvents
	// campaigns is true once this process has become a candidate. Before that it waits for its caches.
	campaigns atomic.Bool
	// finished receives one value when the manager stops: nil if all guarded work has returned, so that the lease can
	// be released. Capacity 1, because there is no receiver if this process does not lead.
	finished chan error
}

func newElection(config *rest.Config, o LeaderElection, recorder events.Recorder) (*election, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	recording := &leaseEvents{Recorder: recorder}
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

func (l LeaderElection) newLock(config *rest.Config, recorder events.Recorder) (leader.Lock, error) {
	if l.NewLock != nil {
		return l.NewLock(recorder)
	}
	if l.Identity == "" {
		var err error
		if l.Identity, err = leader.Identity(); err != nil {
			return nil, err
		}
	}
	return leader.NewLeaseLock(config, metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name}, l.Identity, recorder)
}

// lead warms the caches and controllers, campaigns, and runs the runnables that need leadership while this process
// leads. It returns when the lease was released, when it was lost and the manager does not survive that, or when intake
// ends before this process was elected.
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
	klog.FromContext(intake).Info("Runnables wait for the leader lease", "lease", m.election.lock.Describe(),
		"runnables", namesOf(m.runnables.where(func(e *entry) bool { return e.needs == withLeader })))
	for {
		err := m.serveTenure(intake, work, stop)
		if !m.survives() || intake.Err() != nil || !errors.Is(err, leader.ErrLost) {
			return err
		}
		if err := m.rebuildGuarded(); err != nil {
			stop(err)
			return nil
		}
		klog.FromContext(intake).Info("Became a follower again")
	}
}

// serveTenure campaigns once, and runs the runnables that need leadership for one tenure.
func (m *Manager) serveTenure(intake, work context.Context, stop context.CancelCauseFunc) error {
	return m.election.elector.Run(intake, func(tenure context.Context) error {
		// Both contexts end with the tenure at the latest, and the fence rejects writes with either of them once the
		// lease may have passed to another process.
		ledIntake, endIntake := context.WithCancel(leader.WithFence(intake, m.election.elector.Check))
		defer endIntake()
		ledWork, endWork := context.WithCancel(work)
		defer endWork()
		over := make(chan struct{}) // closed by the function below when the tenure has ended
		defer context.AfterFunc(tenure, func() {
			if !m.survives() {
				stop(context.Cause(tenure))
			}
			endWork()
			endIntake()
			close(over)
		})()
		m.startLed(ledIntake, ledWork, stop)
		select {
		case err := <-m.election.finished:
			return err
		case <-over:
		}
		if m.survives() {
			err := m.stepDown()
			if err == nil {
				return nil
			}
			stop(fmt.Errorf("%w; %w", context.Cause(tenure), err))
		}
		return <-m.election.finished
	})
}

// startLed starts the runnables that need leadership.
func (m *Manager) startLed(intake, work context.Context, stop context.CancelCauseFunc) {
	m.runnables.startAll(withLeader, starter(intake, work, stop))
	m.elect.Do(func() { close(m.elected) })
}

// survives reports whether the manager continues after the lease was lost.
func (m *Manager) survives() bool { return m.election != nil && m.election.options.Survive }

// stepDown waits until all guarded work has returned. The work has already been cancelled.
//
// Errors: some work has not returned by the time another process may lead; this process must then end.
func (m *Manager) stepDown() error {
	m.runnables.stopStarting(withLeader)
	m.election.events.recordEnd()
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

// rebuildGuarded rebuilds the runnables that ran in the last tenure.
func (m *Manager) rebuildGuarded() error {
	// claimEnded leaves out entries that Remove or Restart is working on.
	for _, old := range m.runnables.claimEnded(withLeader) {
		if err := m.rebuild(old); err != nil {
			return err
		}
	}
	return nil
}

// rebuild rebuilds a runnable that has ended. The new one starts as soon as runnables of its leadership may start.
func (m *Manager) rebuild(old *entry) error {
	rebuilder, ok := old.runnable.(Rebuilder)
	if !ok {
		return fmt.Errorf("%s cannot be built again", old.name)
	}
	next, err := rebuilder.Rebuild()
	if err != nil {
		return fmt.Errorf("build %s again: %w", old.name, err)
	}
	fresh := newEntry(next)
	fresh.name, fresh.needs = old.name, old.needs
	m.runnables.replace(old, fresh)
	m.measure(fresh)
	return nil
}

// warmUp waits for the caches, but at most for LeaderElection.WarmUp, because one cache that cannot be filled must not
// keep this process from becoming a candidate.
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

// handOver makes the elector release the lease unless guarded work is still running, and returns the elector's error.
func (e *election) handOver(campaign *part, workRemains bool) error {
	var result error
	if workRemains {
		result = fmt.Errorf("%w: lease %s runs out by itself", leader.ErrWorkRemains, e.lock.Describe())
	}
	e.finished <- result
	return campaign.end(e.options.ReleaseTimeout() + partTimeout)
}

// leaseEvents records events about the lease. It keeps the lease object for the last event.
type leaseEvents struct {
	events.Recorder
	identity string // set before the first event

	mu    sync.Mutex
	lease runtime.Object // nil if this process has never led
}

// Eventf implements [events.Recorder].
func (l *leaseEvents) Eventf(lease runtime.Object, eventType, reason, message string, args ...any) {
	l.mu.Lock()
	l.lease = lease
	l.mu.Unlock()
	l.Recorder.Eventf(lease, eventType, reason, message, args...)
}

// recordEnd records the end of leadership, if this process led. It is called before events are drained, and so before
// the lease is released.
//
// Source: client-go v0.37.2 tools/leaderelection/resourcelock/leaselock.go.
func (l *leaseEvents) recordEnd() {
	l.mu.Lock()
	lease := l.lease
	l.mu.Unlock()
	if lease != nil {
		l.Recorder.Eventf(lease, corev1.EventTypeNormal, "LeaderElection", "%s stopped leading", l.identity)
	}
}
