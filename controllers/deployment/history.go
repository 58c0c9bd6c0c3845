package deployment

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
)

// cleanUpHistory deletes the oldest revisions beyond the number that the Deployment keeps. One that still has pods,
// or may have, or whose controller has not seen its latest change, is spared; no other is taken in its place.
//
// Differs: kube-controller-manager deletes a ReplicaSet that the same sync has just scaled up, which happens when a
// Deployment without pods is paused, its template is a new one, and it keeps no history.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, cleanupDeployment
func (p *planner) cleanUpHistory() {
	limit := p.d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(p.oldRSs),
		func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	excess := len(kept) - int(*limit)
	if excess <= 0 {
		return
	}
	slices.SortFunc(kept, byRevision)
	for _, rs := range kept[:excess] {
		if p.edits(rs) {
			continue
		}
		if rs.Status.Replicas == 0 && size(rs) == 0 && rs.Generation <= rs.Status.ObservedGeneration {
			p.add(DeleteReplicaSet{ReplicaSet: rs})
		}
	}
}

// edits reports whether the plan changes rs.
func (p *planner) edits(rs *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(p.plan.Steps, func(s Step) bool {
		edit, ok := s.(EditReplicaSet)
		return ok && edit.ReplicaSet.Name == rs.Name
	})
}

// byRevision orders by revision, then by age. One whose revision is not a number, because somebody tampered with it,
// is compared by age alone.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, ReplicaSetsByRevision
func byRevision(a, b *appsv1.ReplicaSet) int {
	x, errX := revisionOf(a)
	y, errY := revisionOf(b)
	if errX != nil || errY != nil {
		return byAge(a, b)
	}
	return cmp.Or(cmp.Compare(x, y), byAge(a, b))
}
