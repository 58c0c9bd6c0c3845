package deployment

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// rollingUpdate takes one step of a rolling update. It scales up the new ReplicaSet as far as the surge allows. If that
// changes nothing, it scales down the old ones as far as availability allows. If that changes nothing either, it only
// writes the status.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, rolloutRolling
func (p *planner) rollingUpdate() {
	p.createNewReplicaSet()
	if !p.resizeNew() && !p.shrinkOld() && p.limits.Complete(p.d, &p.d.Status) {
		p.cleanUpHistory()
	}
	p.writeRolloutStatus()
}

// resizeNew scales the new ReplicaSet, and reports whether its size changes.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, reconcileNewReplicaSet
func (p *planner) resizeNew() bool {
	to := p.limits.Replicas
	if replicasets.Size(p.newRS) < to {
		to = p.allowedSize(p.newRS)
	}
	_, resized := p.resize(p.newRS, to, lazily)
	return resized
}

// shrinkOld scales down old ReplicaSets, and reports whether the size of any changes.
//
// How many pods may be removed:
//
//	sum of all sizes - minimum available - pods of the new ReplicaSet that are not available yet
//
// The last term keeps a broken new version from replacing the old one: its pods exist, so they count in the sum, but
// they do not serve. With 10 replicas, maxUnavailable 2 and maxSurge 3, a rollout whose 5 new pods never become
// available stops at 8 old and 5 new pods: 13 - 8 - 5 = 0. If the user then goes back to the old template, the "new"
// ReplicaSet is the healthy one, and broken pods may be removed first.
//
// Differs: when scaling fails, kube-controller-manager drops the error, and with it the retry. Here the sync fails
// after the status is written. And a ReplicaSet that was scaled down a moment ago may still report more available pods
// than it asks for: here only as many count as it asks for. kube-controller-manager trusts such a count of the new
// ReplicaSet, and can then remove more old pods than it may.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, reconcileOldReplicaSets
func (p *planner) shrinkOld() bool {
	old := replicasets.Active(p.oldRSs)
	if len(old) == 0 {
		return false
	}
	notYet := replicasets.Size(p.newRS) - staying(p.newRS)
	room := replicasets.TotalSize(old) + replicasets.Size(p.newRS) - p.limits.MinAvailable() - notYet
	if room <= 0 {
		return false
	}
	removed, trusted := p.removeUnhealthy(old, room)
	if !trusted {
		return false
	}
	return removed+p.removeHealthy(old) > 0
}

// staying is how many of its available pods a ReplicaSet is going to keep.
func staying(rs *appsv1.ReplicaSet) int32 {
	return min(rs.Status.AvailableReplicas, replicasets.Size(rs))
}

// removeUnhealthy removes at most room pods that are not available, from the oldest ReplicaSet on. That costs no
// availability, and the rollout may be waiting for such pods. It replaces the ReplicaSets in old that it scales down.
//
// It returns trusted false if a ReplicaSet reports more available pods than it asks for: it was scaled down a moment
// ago, and its controller has not counted since. Then the sync removes nothing more.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, cleanupUnhealthyReplicas
func (p *planner) removeUnhealthy(old []*appsv1.ReplicaSet, room int32) (removed int32, trusted bool) {
	for i, rs := range old {
		if removed >= room {
			break
		}
		unhealthy := replicasets.Size(rs) - rs.Status.AvailableReplicas
		if unhealthy < 0 {
			return removed, false
		}
		if unhealthy == 0 {
			continue
		}
		n := min(unhealthy, room-removed)
		old[i], _ = p.resize(rs, replicasets.Size(rs)-n, statusAnyway)
		removed += n
	}
	return removed, true
}

// removeHealthy removes the available pods beyond the minimum, from the oldest ReplicaSet on. The pods that
// removeUnhealthy removed were not available, so the counts still hold.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, scaleDownOldReplicaSetsForRollingUpdate
func (p *planner) removeHealthy(old []*appsv1.ReplicaSet) (removed int32) {
	surplus := replicasets.Sum(old, staying) + staying(p.newRS) - p.limits.MinAvailable()
	for _, rs := range old {
		if removed >= surplus {
			break
		}
		n := min(replicasets.Size(rs), surplus-removed)
		p.resize(rs, replicasets.Size(rs)-n, statusAnyway)
		removed += n
	}
	return removed
}
