package chapter12

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the lease of a server as client-go's electors and ours see it. The times in it are those of its process's
// clock, which is skew ahead.
type lock struct {
	name   string
	server *server
	skew   time.Duration
	seen   int // the version that was read or written last
	// released is called when the lease is given back; nil: nothing is.
	released func()
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	now, err := l.server.get(l.name)
	switch {
	case err != nil:
		return nil, nil, err
	case now.version == 0:
		return nil, nil, apierrors.NewNotFound(leases, "lock")
	}
	l.seen = now.version
	record := &resourcelock.LeaderElectionRecord{
		HolderIdentity: now.holder, LeaseDurationSeconds: int(leaseDuration / time.Second),
		RenewTime: metav1.NewTime(now.renewed.Add(-l.skew)),
	}
	if now.holder == "" {
		record.LeaseDurationSeconds = 1
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.seen = 0
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.released != nil {
		l.released()
	}
	err := l.server.put(l.name, lease{record.HolderIdentity, record.RenewTime.Add(l.skew), l.seen})
	if errors.Is(err, errConflict) {
		return apierrors.NewConflict(leases, "lock", err)
	}
	if err == nil {
		l.seen++
	}
	return err
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return l.name }
func (l *lock) Describe() string   { return "kube-system/lock" }

// ours is the lock as the framework's elector uses it.
type ours struct{ *lock }

func (l ours) Get(ctx context.Context) (coordinationv1.LeaseSpec, error) {
	record, _, err := l.lock.Get(ctx)
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	return resourcelock.LeaderElectionRecordToLeaseSpec(record), nil
}

func (l ours) Create(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	return l.lock.Create(ctx, *resourcelock.LeaseSpecToLeaderElectionRecord(&spec))
}

func (l ours) Update(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	return l.lock.Update(ctx, *resourcelock.LeaseSpecToLeaderElectionRecord(&spec))
}
