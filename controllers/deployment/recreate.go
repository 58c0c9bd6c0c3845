package deployment

import (
	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// recreate takes one step of a rollout that never runs two versions at once: the old ReplicaSets down to nothing;
// then, once none of their pods can be running any more, the new one up to full size.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/recreate.go, rolloutRecreate
func (p *planner) recreate() {
	if p.removeOld() || p.oldPodsRunning() {
		p.writeRolloutStatus()
		return
	}
	p.createNewReplicaSet()
	p.resize(p.newRS, p.limits.replicas, lazily)
	if complete(p.d, &p.d.Status, p.limits.replicas) {
		p.cleanUpHistory()
	}
	p.writeRolloutStatus()
}

// removeOld reports whether an old ReplicaSet still had a size to lose.
func (p *planner) removeOld() bool {
	old := active(p.oldRSs)
	for _, rs := range old {
		p.resize(rs, 0, lazily)
	}
	return len(old) > 0
}

// oldPodsRunning reports whether an old ReplicaSet counts pods, or owns one that may still run: it has not ended,
// though it may be terminating. The two are not the same: a ReplicaSet does not count its terminating pods, and its
// count lags behind.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/recreate.go, oldPodsRunning
func (p *planner) oldPodsRunning() bool {
	if sum(p.oldRSs, statusReplicas) > 0 {
		return true
	}
	for _, rs := range p.oldRSs {
		for _, pod := range p.observed.Pods[rs.UID] {
			if !pods.Terminal(pod) {
				return true
			}
		}
	}
	return false
}
