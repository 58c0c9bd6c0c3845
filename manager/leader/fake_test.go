package leader

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeLease is the Lease object on the server: a record and its resource version.
type fakeLease struct {
	mu      sync.Mutex
	record  *leaseRecord // nil: the object does not exist
	version int
	history []string // the holder of each write
}

// fakeLock is one candidate's view of the lease, with faults.
type fakeLock struct {
	lease    *fakeLease
	identity string
	seen     int // the version that was last read or written
	events   []string
	// fault is called before each call. If it returns an error, the call returns that error; it takes effect only if
	// applied is true.
	fault atomic.Pointer[fault]
}

type fault func(ctx context.Context, verb string) (applied bool, err error)

// fail replaces the faults of a lock that may be in use; nil ends them.
func (l *fakeLock) fail(f fault) { l.fault.Store(&f) }

var (
	leases       = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	errPartition = errors.New("no route to host")
)

func (l *fakeLock) faults(ctx context.Context, verb string) (bool, error) {
	if f := l.fault.Load(); f != nil && *f != nil {
		return (*f)(ctx, verb)
	}
	return true, ctx.Err()
}

func (l *fakeLock) Get(ctx context.Context) (coordinationv1.LeaseSpec, error) {
	if _, err := l.faults(ctx, "get"); err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.lease.record == nil {
		return coordinationv1.LeaseSpec{}, apierrors.NewNotFound(leases, "lock")
	}
	l.seen = l.lease.version
	return specOf(*l.lease.record), nil
}

func (l *fakeLock) Create(ctx context.Context, record coordinationv1.LeaseSpec) error {
	return l.write(ctx, "create", record)
}

func (l *fakeLock) Update(ctx context.Context, record coordinationv1.LeaseSpec) error {
	return l.write(ctx, "update", record)
}

func (l *fakeLock) write(ctx context.Context, verb string, spec coordinationv1.LeaseSpec) error {
	record := recordOf(spec)
	applied, fault := l.faults(ctx, verb)
	if fault != nil && !applied {
		return fault
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	exists := l.lease.record != nil
	switch {
	case verb == "create" && exists:
		return apierrors.NewAlreadyExists(leases, "lock")
	case verb == "update" && !exists:
		return apierrors.NewNotFound(leases, "lock")
	case record.LeaderTransitions < 0: // the server's rule; a larger number than fits becomes negative
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Lease"}, "lock", nil)
	case verb == "update" && l.seen != l.lease.version:
		return apierrors.NewConflict(leases, "lock", errors.New("version "+strconv.Itoa(l.seen)))
	}
	// The wire format keeps microseconds and no monotonic clock.
	record.RenewTime.Time = record.RenewTime.Truncate(time.Microsecond)
	record.AcquireTime.Time = record.AcquireTime.Truncate(time.Microsecond)
	l.lease.record = &record
	l.lease.version++
	l.lease.history = append(l.lease.history, record.HolderIdentity)
	if fault == nil {
		l.seen = l.lease.version
	}
	return fault
}

func (l *fakeLock) RecordEvent(s string) { l.events = append(l.events, s) }
func (l *fakeLock) Identity() string     { return l.identity }
func (l *fakeLock) Describe() string     { return "kube-system/lock" }

// set writes the lease as a third party would.
func (s *fakeLease) set(record *leaseRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = record
	s.version++
}

func (s *fakeLease) get() leaseRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.record
}

// edit lets a third party change the lease, if it is there.
func (s *fakeLease) edit(change func(*leaseRecord) *leaseRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return
	}
	record := *s.record
	s.record = change(&record)
	s.version++
}

// holder is empty also when there is no lease.
func (s *fakeLease) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return ""
	}
	return s.record.HolderIdentity
}
