package controllerruntime

import (
	"cmp"
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/flyball-dev/flyball/client/events"
	own "github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
)

// defaultRenewDeadline is the default of controller-runtime and Flyball. The timeout of a request depends on it.
const defaultRenewDeadline = 10 * time.Second

// election returns the core's options of an election for the lock that the options request. controller-runtime makes
// the lock.
func (m *Manager) election(config *rest.Config) (own.LeaderElection, error) {
	o := m.o
	e := own.LeaderElection{
		Enabled: o.LeaderElection, Namespace: o.LeaderElectionNamespace,
		Name: cmp.Or(o.LeaderElectionID, "leader-election"), After: m.synced,
	}
	for to, from := range map[*time.Duration]*time.Duration{
		&e.LeaseDuration: o.LeaseDuration, &e.RenewDeadline: o.RenewDeadline, &e.RetryPeriod: o.RetryPeriod,
	} {
		if from != nil {
			*to = *from
		}
	}
	var elsewhere events.Recorder
	if o.LeaderElectionConfig != nil {
		config = o.LeaderElectionConfig
		var err error
		if elsewhere, err = m.recorderOf(config); err != nil {
			return e, err
		}
	}
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil // A renewal must not wait for other requests.
	e.NewLock = func(here events.Recorder) (leader.Lock, error) {
		if o.LeaderElectionResourceLockInterface != nil {
			return lock{o.LeaderElectionResourceLockInterface}, nil
		}
		to := here
		if elsewhere != nil {
			to = elsewhere
		}
		made, err := leaderelection.NewResourceLock(config, leaseRecorders{to: to}, leaderelection.Options{
			LeaderElection: true, LeaderElectionResourceLock: o.LeaderElectionResourceLock,
			LeaderElectionID:        o.LeaderElectionID,
			LeaderElectionNamespace: o.LeaderElectionNamespace, LeaderLabels: o.LeaderElectionLabels,
			RenewDeadline: cmp.Or(e.RenewDeadline, defaultRenewDeadline),
		})
		return lock{made}, err
	}
	return e, nil
}

// lock is a lock of client-go as the core sees it.
type lock struct{ resourcelock.Interface }

// Get implements leader.Lock.
func (l lock) Get(ctx context.Context) (coordinationv1.LeaseSpec, error) {
	r, _, err := l.Interface.Get(ctx)
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	return resourcelock.LeaderElectionRecordToLeaseSpec(r), nil
}

// Create implements leader.Lock.
func (l lock) Create(ctx context.Context, record coordinationv1.LeaseSpec) error {
	return l.Interface.Create(ctx, *resourcelock.LeaseSpecToLeaderElectionRecord(&record))
}

// Update implements leader.Lock.
func (l lock) Update(ctx context.Context, record coordinationv1.LeaseSpec) error {
	return l.Interface.Update(ctx, *resourcelock.LeaseSpecToLeaderElectionRecord(&record))
}

// recorderOf returns recorders for the cluster of the lease, which may not be the manager's.
func (m *Manager) recorderOf(config *rest.Config) (events.Recorder, error) {
	sender, err := events.New(config, events.Options{Scheme: m.o.Cache.Scheme})
	if err != nil {
		return nil, err
	}
	return sender.Recorder(m.o.LeaderElectionID), m.first.add(manager.RunnableFunc(sender.Run), nil)
}

// leaseRecorders implements controller-runtime's provider of recorders for a lock, which uses only one.
type leaseRecorders struct {
	recorder.Provider
	to events.Recorder
}

// GetEventRecorderFor returns the recorder of events about the lease.
func (l leaseRecorders) GetEventRecorderFor(string) record.EventRecorder {
	return leaseRecorder{to: l.to}
}

// leaseRecorder is a recorder of which a lock uses only Eventf.
type leaseRecorder struct {
	record.EventRecorder
	to resourcelock.EventRecorder
}

func (r leaseRecorder) Eventf(lease runtime.Object, eventType, reason, format string, args ...any) {
	r.to.Eventf(lease, eventType, reason, format, args...)
}
