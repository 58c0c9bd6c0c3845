package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
)

// rollingUpdate takes one step of a rolling update: the new ReplicaSet up as far as the surge allows; or, when that
// is as far as it goes, the old ones down as far as availability allows; or nothing but the status.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rolling.go, rolloutRolling
func (p *planner) rollingUpdate() {
	p.createNewReplicaSet()
	if !p.resizeNew() && !p.shrinkOld() && complete(p.d, &p.d.Status, p.limits.replicas) {
		p.cleanUpHistory()
	}
	p.writeRolloutStatus()
}

// resizeNew reports whether the new ReplicaSet is to have another size.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rolling.go, reconcileNewReplicaSet
func (p *planner) resizeNew() bool {
	to := p.limits.replicas
	if size(p.newRS) < to {
		to = p.allowedSize(p.newRS)
	}
	_, resized := p.resize(p.newRS, to, lazily)
	return resized
}

// shrinkOld reports whether old ReplicaSets are to have fewer pods.
//
// The room there is:
//
//	sum of all sizes - least number available - pods of the new ReplicaSet that are not available yet
//
// The last term keeps a broken new version from eating up the old one: its pods are there, so they count in the sum,
// but they serve nobody. With 10 replicas, 2 of them dispensable and 3 in surplus, a rollout whose 5 new pods never
// become available stays at 8 old + 5 new: 13 - 8 - 5 = 0. When the user then asks for the old template again, the
// "new" ReplicaSet is the healthy one, and there is room to remove broken pods first.
//
// Differs: when scaling fails, kube-controller-manager forgets the error, and with it the retry. Here the sync fails
// once the status is written. And where a ReplicaSet was shrunk a moment ago and still reports more available pods than
// it asks for, only those it asks for count; kube-controller-manager believes such a count of the new ReplicaSet, and
// can take away more old pods than it may.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rolling.go, reconcileOldReplicaSets
func (p *planner) shrinkOld() bool {
	old := active(p.oldRSs)
	if len(old) == 0 {
		return false
	}
	notYet := size(p.newRS) - staying(p.newRS)
	room := totalSize(old) + size(p.newRS) - p.limits.minAvailable() - notYet
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
func staying(rs *appsv1.ReplicaSet) int32 { return min(available(rs), size(rs)) }

// removeUnhealthy takes away at most room pods that are not available, from the oldest ReplicaSet on: they cost no
// availability, and a rollout may be stuck behind them. In old it replaces the ReplicaSets it shrinks.
//
// It is not trusted when the status of a ReplicaSet claims more available pods than it asks for: it was shrunk a
// moment ago, and its controller has not said yet what is left. Then nothing more is taken away in this sync.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rolling.go, cleanupUnhealthyReplicas
func (p *planner) removeUnhealthy(old []*appsv1.ReplicaSet, room int32) (removed int32, trusted bool) {
	for i, rs := range old {
		if removed >= room {
			break
		}
		unhealthy := size(rs) - available(rs)
		if unhealthy < 0 {
			return removed, false
		}
		if unhealthy == 0 {
			continue
		}
		n := min(unhealthy, room-removed)
		old[i], _ = p.resize(rs, size(rs)-n, statusAnyway)
		removed += n
	}
	return removed, true
}

// removeHealthy takes away as many pods as are available beyond the least number, from the oldest ReplicaSet on. What
// removeUnhealthy took was not available, so the counts still hold.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rolling.go, scaleDownOldReplicaSetsForRollingUpdate
func (p *planner) removeHealthy(old []*appsv1.ReplicaSet) (removed int32) {
	surplus := sum(old, staying) + staying(p.newRS) - p.limits.minAvailable()
	for _, rs := range old {
		if removed >= surplus {
			break
		}
		n := min(size(rs), surplus-removed)
		p.resize(rs, size(rs)-n, statusAnyway)
		removed += n
	}
	return removed
}
