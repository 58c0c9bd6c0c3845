package deployment

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// sizeChanged reports whether the Deployment's size is another than when one of its active ReplicaSets was last
// scaled. Such a change is spread over the ReplicaSets before a rollout goes on.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, isScalingEvent
func (p *planner) sizeChanged() bool {
	return slices.ContainsFunc(active(p.all()), func(rs *appsv1.ReplicaSet) bool {
		desired, ok := count(rs, DesiredReplicasAnnotation)
		return ok && desired != p.limits.replicas
	})
}

// scale spreads the Deployment's size over its ReplicaSets without moving the rollout, which may be paused or stuck.
//
// Where one ReplicaSet is active and has the right size already, nothing happens, not even to its annotations.
// (Somebody else set its size. The Deployment then stays in this state until its size changes: kept as it is in
// kube-controller-manager, since users see it.)
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, scale
func (p *planner) scale() {
	if rs := p.activeOrLatest(); rs != nil {
		p.resize(rs, p.limits.replicas, lazily)
		return
	}
	if p.saturated() {
		for _, rs := range p.newestFirst(active(p.oldRSs)) {
			p.resize(rs, 0, lazily)
		}
		return
	}
	if isRolling(p.d) {
		p.scaleProportionally()
	}
}

// activeOrLatest is the ReplicaSet that alone takes the Deployment's size: the only active one; or, where none is,
// the new one, else the latest. It is nil when several are active, or there is none at all.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, FindActiveOrLatest
func (p *planner) activeOrLatest() *appsv1.ReplicaSet {
	switch candidates := active(p.all()); {
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
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, IsSaturated
func (p *planner) saturated() bool {
	if p.newRS == nil {
		return false
	}
	desired, ok := count(p.newRS, DesiredReplicasAnnotation)
	want := p.limits.replicas
	return ok && desired == want && size(p.newRS) == want && available(p.newRS) == want
}

// scaleProportionally gives each active ReplicaSet its share of what is to be added or taken away, so that a version
// that is half rolled out, and may be broken, does not get more than its part.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, scale
func (p *planner) scaleProportionally() {
	rss := append(p.newestFirst(active(p.oldRSs)), active(asList(p.newRS))...)
	if len(rss) == 0 {
		return
	}
	var allowed int32
	if p.limits.replicas > 0 {
		allowed = p.limits.maxReplicas()
	}
	change := allowed - totalSize(rss)
	switch {
	case change > 0:
		slices.SortFunc(rss, bySizeThenNewer)
	case change < 0:
		slices.SortFunc(rss, bySizeThenOlder)
	}
	sizes, rest := make([]int32, len(rss)), change
	for i, rs := range rss {
		share := p.share(rs, rest)
		sizes[i] = size(rs) + share
		rest -= share
	}
	sizes[0] = max(0, sizes[0]+rest) // what rounding left over goes to the largest
	for i, rs := range rss {
		p.resize(rs, sizes[i], refreshingAnnotations)
	}
}

// share is what a ReplicaSet gets of the rest that is still to be given out (or, negative, taken away).
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, GetReplicaSetProportion
func (p *planner) share(rs *appsv1.ReplicaSet, rest int32) int32 {
	switch fair := p.fairShare(rs); {
	case rest > 0:
		return min(fair, rest)
	case rest < 0:
		return max(fair, rest)
	}
	return 0
}

// fairShare is how much larger a ReplicaSet would be if it had grown with the Deployment since it was last scaled.
//
// Differs: kube-controller-manager multiplies two numbers of pods in 32 bits; above 46,340 of each that overflows.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, getReplicaSetFraction
func (p *planner) fairShare(rs *appsv1.ReplicaSet) int32 {
	if p.limits.replicas == 0 {
		return -size(rs)
	}
	before, ok := count(rs, MaxReplicasAnnotation)
	if !ok || before == 0 {
		before = p.d.Status.Replicas // somebody tampered with the annotation
	}
	if before == 0 {
		return 0
	}
	grown := math.Round(float64(size(rs)) * float64(p.limits.maxReplicas()) / float64(before))
	return int32(min(grown, math.MaxInt32)) - size(rs)
}

// resizeMode says when a ReplicaSet is written.
type resizeMode int

const (
	lazily                resizeMode = iota // only when its size changes
	refreshingAnnotations                   // also when only its annotations do
	statusAnyway                            // as lazily, and see [EditReplicaSet.StatusAnyway]
)

// resize sets a ReplicaSet's size, and notes beside it which size of the Deployment that belongs to. It returns what
// the ReplicaSet then is and whether its size changed.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, scaleReplicaSet
func (p *planner) resize(rs *appsv1.ReplicaSet, to int32, mode resizeMode) (*appsv1.ReplicaSet, bool) {
	from := size(rs)
	edit := EditReplicaSet{
		ReplicaSet:   rs,
		Annotations:  changedKeys(rs.Annotations, replicasAnnotations(p.limits)),
		StatusAnyway: mode == statusAnyway,
	}
	if from == to && (mode != refreshingAnnotations || len(edit.Annotations) == 0) {
		return rs, false
	}
	if from != to {
		edit.Replicas = ptr.To(to)
		direction := "up"
		if to < from {
			direction = "down"
		}
		edit.Event = normal("ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", direction, rs.Name, from, to)
	}
	p.add(edit)
	return edit.result(rs), from != to
}

func (p *planner) newestFirst(rss []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	rss = slices.Clone(rss)
	slices.Reverse(rss) // planner.oldRSs are oldest first
	return rss
}

func asList(rs *appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	if rs == nil {
		return nil
	}
	return []*appsv1.ReplicaSet{rs}
}
