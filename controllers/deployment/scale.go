package deployment

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
)

// sizeChanged reports whether the Deployment's size is different now from when one of its active ReplicaSets was last
// scaled. Such a change is spread over the ReplicaSets before the rollout goes on.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, isScalingEvent
func (p *planner) sizeChanged() bool {
	return slices.ContainsFunc(replicasets.Active(p.all()), func(rs *appsv1.ReplicaSet) bool {
		desired, ok := replicasets.Count(rs, replicasets.DesiredReplicasAnnotation)
		return ok && desired != p.limits.Replicas
	})
}

// scale spreads the Deployment's size over its ReplicaSets. It does not move the rollout, which may be paused or stuck.
//
// If only one ReplicaSet is active and it has the right size already, nothing happens, not even to its annotations.
// (Somebody else has set its size. The Deployment then stays in this state until its own size changes. This is as in
// kube-controller-manager, because users see it.)
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scale
func (p *planner) scale() {
	if rs := p.activeOrLatest(); rs != nil {
		p.resize(rs, p.limits.Replicas, lazily)
		return
	}
	rss := replicasets.Active(p.oldRSs)
	slices.Reverse(rss) // newest first
	if p.saturated() {
		for _, rs := range rss {
			p.resize(rs, 0, lazily)
		}
		return
	}
	if !rollout.IsRolling(p.d) {
		return
	}
	// Each active ReplicaSet gets its share of the change: a version that is partly rolled out, and may be broken, does
	// not get more than that.
	if p.newRS != nil {
		rss = replicasets.Active(append(rss, p.newRS))
	}
	for i, size := range p.limits.Spread(rss, p.d.Status.Replicas) {
		p.resize(rss[i], size, refreshingAnnotations)
	}
}

// activeOrLatest returns the ReplicaSet that alone takes the Deployment's size: the only active one; or if none is
// active, the new one, else the latest. It is nil if several are active, or if there are no ReplicaSets.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, FindActiveOrLatest
func (p *planner) activeOrLatest() *appsv1.ReplicaSet {
	switch candidates := replicasets.Active(p.all()); {
	case len(candidates) == 1:
		return candidates[0]
	case len(candidates) > 1:
		return nil
	case p.newRS != nil:
		return p.newRS
	case len(p.oldRSs) > 0:
		return p.oldRSs[len(p.oldRSs)-1]
	}
	return nil
}

// saturated reports whether the new ReplicaSet runs the whole Deployment, and was last scaled to do so.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, IsSaturated
func (p *planner) saturated() bool {
	if p.newRS == nil {
		return false
	}
	desired, ok := replicasets.Count(p.newRS, replicasets.DesiredReplicasAnnotation)
	want := p.limits.Replicas
	return ok && desired == want && replicasets.Size(p.newRS) == want && p.newRS.Status.AvailableReplicas == want
}

// resizeMode tells when a ReplicaSet is written.
type resizeMode int

const (
	lazily                resizeMode = iota // only if its size changes
	refreshingAnnotations                   // also if only its annotations change
	statusAnyway                            // as lazily, with editReplicaSet.StatusAnyway set
)

// resize sets the size of a ReplicaSet, and records the size of the Deployment in its annotations. It returns the
// ReplicaSet with these changes, and whether its size changes.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scaleReplicaSet
func (p *planner) resize(rs *appsv1.ReplicaSet, to int32, mode resizeMode) (*appsv1.ReplicaSet, bool) {
	from := replicasets.Size(rs)
	wanted := replicasets.ScaleAnnotations(p.limits.Replicas, p.limits.MaxReplicas())
	edit := editReplicaSet{
		ReplicaSet:   rs,
		Annotations:  replicasets.Changed(rs.Annotations, wanted),
		StatusAnyway: mode == statusAnyway,
	}
	if from == to && (mode != refreshingAnnotations || len(edit.Annotations) == 0) {
		return rs, false
	}
	if from != to {
		edit.Replicas = &to
		direction := "up"
		if to < from {
			direction = "down"
		}
		edit.Event = normal("ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", direction, rs.Name, from, to)
	}
	p.add(edit)
	return edit.result(rs), from != to
}
