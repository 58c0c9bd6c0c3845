package leader

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// observation is a state of the lock and when it was first seen, on the monotonic clock.
type observation struct {
	record resourcelock.LeaderElectionRecord
	at     time.Time // zero: never
}

// expiry is when nobody leads any more by an unchanged lease. What the lease says itself counts only if it names a holder, and is longer
// than what candidates agree on: a person may have shortened it, of which the holder knows nothing.
func (o observation) expiry(agreed time.Duration) time.Time {
	switch {
	case o.at.IsZero():
		return time.Time{}
	case o.record.HolderIdentity == "":
		return o.at.Add(agreed)
	}
	return o.at.Add(max(agreed, time.Duration(o.record.LeaseDurationSeconds)*time.Second))
}

// releasedSeconds is the duration in a lease that its holder gave back.
//
// Source: client-go v0.37.2 tools/leaderelection, tryRelease.
const releasedSeconds = 1

// emptied is the record of a lease that its holder gives back.
func emptied(record resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	record.HolderIdentity, record.LeaseDurationSeconds = "", releasedSeconds
	record.RenewTime, record.AcquireTime = now, now
	return record
}

// isReleased says that the holder gave the lease back: nobody else took his name out of it.
func isReleased(record resourcelock.LeaderElectionRecord) bool {
	return record.HolderIdentity == "" && record.LeaseDurationSeconds == releasedSeconds
}

// sameTime compares as times are written into the lease: in microseconds, and without the monotonic clock.
func sameTime(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func sameRecord(a, b resourcelock.LeaderElectionRecord) bool {
	return a.HolderIdentity == b.HolderIdentity && a.LeaderTransitions == b.LeaderTransitions &&
		a.LeaseDurationSeconds == b.LeaseDurationSeconds &&
		sameTime(a.RenewTime.Time, b.RenewTime.Time) && sameTime(a.AcquireTime.Time, b.AcquireTime.Time)
}
