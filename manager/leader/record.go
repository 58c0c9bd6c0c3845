package leader

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// leaseRecord is what a lock holds.
type leaseRecord struct {
	// HolderIdentity is empty if the lock is free.
	HolderIdentity       string
	LeaseDurationSeconds int
	AcquireTime          metav1.Time
	RenewTime            metav1.Time
	// LeaderTransitions counts the changes of the holder.
	LeaderTransitions int
	// Strategy and PreferredHolder belong to coordinated leader election. The elector leaves them as they are.
	Strategy        coordinationv1.CoordinatedLeaseStrategy
	PreferredHolder string
}

// recordOf returns the record in a Lease.
func recordOf(s coordinationv1.LeaseSpec) leaseRecord {
	return leaseRecord{
		HolderIdentity:       ptr.Deref(s.HolderIdentity, ""),
		LeaseDurationSeconds: int(ptr.Deref(s.LeaseDurationSeconds, 0)),
		AcquireTime:          metav1.Time{Time: ptr.Deref(s.AcquireTime, metav1.MicroTime{}).Time},
		RenewTime:            metav1.Time{Time: ptr.Deref(s.RenewTime, metav1.MicroTime{}).Time},
		LeaderTransitions:    int(ptr.Deref(s.LeaseTransitions, 0)),
		Strategy:             ptr.Deref(s.Strategy, ""),
		PreferredHolder:      ptr.Deref(s.PreferredHolder, ""),
	}
}

// specOf returns the form that a record has in a Lease.
func specOf(r leaseRecord) coordinationv1.LeaseSpec {
	s := coordinationv1.LeaseSpec{
		HolderIdentity:       &r.HolderIdentity,
		LeaseDurationSeconds: ptr.To(int32(r.LeaseDurationSeconds)),
		AcquireTime:          &metav1.MicroTime{Time: r.AcquireTime.Time},
		RenewTime:            &metav1.MicroTime{Time: r.RenewTime.Time},
		LeaseTransitions:     ptr.To(int32(r.LeaderTransitions)),
	}
	if r.PreferredHolder != "" {
		s.PreferredHolder = &r.PreferredHolder
	}
	if r.Strategy != "" {
		s.Strategy = &r.Strategy
	}
	return s
}

// observation is a state of the lock and the time at which it was first seen, on the monotonic clock.
type observation struct {
	record leaseRecord
	at     time.Time // zero if never seen
}

// expiry returns the time from which nobody leads by this lease if it stays unchanged. The duration in the lease counts
// only if it is longer than the agreed one and the lease names a holder: a person may have shortened it without the
// holder's knowledge.
func (o observation) expiry(agreed time.Duration) time.Time {
	switch {
	case o.at.IsZero():
		return time.Time{}
	case o.record.HolderIdentity == "":
		return o.at.Add(agreed)
	}
	return o.at.Add(max(agreed, time.Duration(o.record.LeaseDurationSeconds)*time.Second))
}

// releasedSeconds is the duration in a lease that its holder released.
//
// Source: client-go v0.37.2 tools/leaderelection, tryRelease.
const releasedSeconds = 1

// emptied returns the record with which a holder releases the lease.
func emptied(record leaseRecord) leaseRecord {
	now := metav1.Now()
	record.HolderIdentity, record.LeaseDurationSeconds = "", releasedSeconds
	record.RenewTime, record.AcquireTime = now, now
	return record
}

// isReleased reports whether the holder itself released the lease. Somebody else who removed its name would not set the
// duration to releasedSeconds.
func isReleased(record leaseRecord) bool {
	return record.HolderIdentity == "" && record.LeaseDurationSeconds == releasedSeconds
}

// sameTime compares times with the precision of the lease: in microseconds, without the monotonic clock.
func sameTime(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func sameRecord(a, b leaseRecord) bool {
	return a.HolderIdentity == b.HolderIdentity && a.LeaderTransitions == b.LeaderTransitions &&
		a.LeaseDurationSeconds == b.LeaseDurationSeconds &&
		sameTime(a.RenewTime.Time, b.RenewTime.Time) && sameTime(a.AcquireTime.Time, b.AcquireTime.Time)
}
