package deployment

import (
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// recreate takes one step of a rollout that never runs two versions at once. It scales the old ReplicaSets down to
// zero, and scales up the new one when none of their pods can be running any more.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/recreate.go, rolloutRecreate
func (p *planner) recreate() {
	if p.removeOld() || p.oldPodsRunning() {
		p.writeRolloutStatus()
		return
	}
	p.createNewReplicaSet()
	p.resize(p.newRS, p.limits.Replicas, lazily)
	if p.limits.Complete(p.d, &p.d.Status) {
		p.cleanUpHistory()
	}
	p.writeRolloutStatus()
}

// removeOld scales the old ReplicaSets down to zero, and reports whether the size of any changes.
func (p *planner) removeOld() bool {
	old := replicasets.Active(p.oldRSs)
	for _, rs := range old {
		p.resize(rs, 0, lazily)
	}
	return len(old) > 0
}

// oldPodsRunning reports whether an old ReplicaSet counts pods, or owns a pod that may still run: one that has not
// ended, even if it is terminating. These differ, because a ReplicaSet does not count its terminating pods, and because
// its count lags behind.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/recreate.go, oldPodsRunning
func (p *planner) oldPodsRunning() bool {
	for _, rs := range p.oldRSs {
		if rs.Status.Replicas > 0 {
			return true
		}
		for _, pod := range p.observed.Pods[rs.UID] {
			if !pods.Terminal(pod) {
				return true
			}
		}
	}
	return false
}
