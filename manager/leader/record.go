package leader

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// observation is a state of the lock and the time at which it was first seen, on the monotonic clock.
type observation struct {
	record resourcelock.LeaderElectionRecord
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
func emptied(record resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	record.HolderIdentity, record.LeaseDurationSeconds = "", releasedSeconds
	record.RenewTime, record.AcquireTime = now, now
	return record
}

// isReleased reports whether the holder itself released the lease. Somebody else who removed its name would not set the
// duration to releasedSeconds.
func isReleased(record resourcelock.LeaderElectionRecord) bool {
	return record.HolderIdentity == "" && record.LeaseDurationSeconds == releasedSeconds
}

// sameTime compares times with the precision of the lease: in microseconds, without the monotonic clock.
func sameTime(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func sameRecord(a, b resourcelock.LeaderElectionRecord) bool {
	return a.HolderIdentity == b.HolderIdentity && a.LeaderTransitions == b.LeaderTransitions &&
		a.LeaseDurationSeconds == b.LeaseDurationSeconds &&
		sameTime(a.RenewTime.Time, b.RenewTime.Time) && sameTime(a.AcquireTime.Time, b.AcquireTime.Time)
}
