package deployment

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// cleanUpHistory deletes the oldest ReplicaSets beyond the Deployment's revisionHistoryLimit. It spares those that have
// pods, those that may have pods, and those whose controller has not seen their latest change. It deletes no others in
// their place.
//
// Differs: kube-controller-manager deletes a ReplicaSet that the same sync has just scaled up. That happens when a
// Deployment without pods is paused, its template is new, and it keeps no history.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, cleanupDeployment
func (p *planner) cleanUpHistory() {
	limit := p.d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(p.oldRSs),
		func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	slices.SortFunc(kept, replicasets.ByRevision)
	for _, rs := range kept[:max(0, len(kept)-int(*limit))] {
		if !p.edits(rs) && rs.Status.Replicas == 0 && replicasets.Size(rs) == 0 &&
			rs.Generation <= rs.Status.ObservedGeneration {
			p.add(deleteReplicaSet{ReplicaSet: rs})
		}
	}
}

// edits reports whether the plan changes rs.
func (p *planner) edits(rs *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(p.plan.steps, func(s step) bool {
		edit, ok := s.(editReplicaSet)
		return ok && edit.ReplicaSet.Name == rs.Name
	})
}
