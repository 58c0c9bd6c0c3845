package manager

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/leader"
)

// LeaderElection configures the lease that runnables wait for. The zero value is off.
type LeaderElection struct {
	Enabled bool
	// Namespace and Name are those of the Lease. Empty means "kube-system" and "flyball-manager".
	Namespace, Name string
	// Identity names this process in the lease. Empty means the host's name and a random part.
	Identity string
	// Options holds the times: 15 s, 10 s and 2 s.
	leader.Options
	// WarmUp is how long the caches are waited for before this process becomes a candidate: a leader with warm caches
	// works at once. Zero means 30 s, after which it is a candidate all the same; negative: not at all.
	WarmUp time.Duration
}

const defaultWarmUp = 30 * time.Second

func (l LeaderElection) withDefaults() LeaderElection {
	if l.Namespace == "" {
		l.Namespace = "kube-system"
	}
	if l.Name == "" {
		l.Name = "flyball-manager"
	}
	if l.WarmUp == 0 {
		l.WarmUp = defaultWarmUp
	}
	return l
}

// election is the manager's part in an election.
type election struct {
	options LeaderElection
	elector *leader.Elector
	events  *leaseEvents
	// finished receives, once, whether guarded work has returned: then the lease is released. Capacity 1, so that it can be
	// sent also when nobody leads.
	finished chan error
}

func newElection(config *rest.Config, o LeaderElection, recorder events.Recorder) (*election, error) {
	if o.Identity == "" {
		var err error
		if o.Identity, err = leader.Identity(); err != nil {
			return nil, err
		}
	}
	recording := &leaseEvents{recorder: recorder, identity: o.Identity}
	lock, err := leader.NewLeaseLock(config, o.Namespace, o.Name, resourcelock.ResourceLockConfig{Identity: o.Identity, EventRecorder: recording})
	if err != nil {
		return nil, err
	}
	elector, err := leader.New(lock, o.Options)
	if err != nil {
		return nil, err
	}
	return &election{options: o, elector: elector, events: recording, finished: make(chan error, 1)}, nil
}

// lead warms the caches, campaigns, and while this process leads lets the runnables run that wait for it. It returns when the
// lease is released or lost, or when intake ends before an election.
func (m *Manager) lead(intake, work context.Context, stop context.CancelCauseFunc) error {
	m.warmUp(intake)
	return m.election.elector.Run(intake, func(tenure context.Context) error {
		// Both contexts end at the latest with the tenure; and no write begins with either when the elector says no.
		ledIntake, endIntake := context.WithCancel(leader.WithFence(intake, m.election.elector.Check))
		defer endIntake()
		ledWork, endWork := context.WithCancel(work)
		defer endWork()
		defer context.AfterFunc(tenure, func() {
			stop(context.Cause(tenure))
			endWork()
			endIntake()
		})()
		m.runnables.open(withLeader, starter(ledIntake, ledWork, stop))
		return <-m.election.finished
	})
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
		result = fmt.Errorf("%w: lease %s/%s runs out by itself", leader.ErrWorkRemains, e.options.Namespace, e.options.Name)
	}
	e.finished <- result
	return campaign.end(e.options.ReleaseTimeout() + partTimeout)
}

// recordEnd records that this process led and does no more.
func (e *election) recordEnd() { e.events.recordEnd() }

// leaseEvents records events about the lease, and remembers the lease for the last of them.
type leaseEvents struct {
	recorder events.Recorder
	identity string

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
