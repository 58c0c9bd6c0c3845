package rollout

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// Spread divides the size that the limits allow among the ReplicaSets of a rollout, in proportion to the sizes they
// have. It sorts rss and returns the new sizes in that order. replicas is the Deployment's status.replicas.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, scale
func (l Limits) Spread(rss []*appsv1.ReplicaSet, replicas int32) []int32 {
	if len(rss) == 0 {
		return nil
	}
	var allowed int32
	if l.Replicas > 0 {
		allowed = l.MaxReplicas()
	}
	rest := allowed - replicasets.TotalSize(rss)
	switch {
	case rest > 0:
		slices.SortFunc(rss, replicasets.BySizeThenNewer)
	case rest < 0:
		slices.SortFunc(rss, replicasets.BySizeThenOlder)
	}
	sizes := make([]int32, len(rss))
	for i, rs := range rss {
		share := l.share(rs, rest, replicas)
		sizes[i] = replicasets.Size(rs) + share
		rest -= share
	}
	sizes[0] = max(0, sizes[0]+rest) // the largest gets what rounding left over
	return sizes
}

// share is what a ReplicaSet gets of the rest. A negative rest is to be taken away.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, GetReplicaSetProportion
func (l Limits) share(rs *appsv1.ReplicaSet, rest, replicas int32) int32 {
	switch fair := l.fairShare(rs, replicas); {
	case rest > 0:
		return min(fair, rest)
	case rest < 0:
		return max(fair, rest)
	}
	return 0
}

// fairShare is by how many pods a ReplicaSet would be larger if it had grown with the Deployment since it was last
// scaled.
//
// Differs: kube-controller-manager multiplies two numbers of pods in 32 bits, which overflows above 46,340 of each.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, getReplicaSetFraction
func (l Limits) fairShare(rs *appsv1.ReplicaSet, replicas int32) int32 {
	size := replicasets.Size(rs)
	if l.Replicas == 0 {
		return -size
	}
	before, ok := replicasets.Count(rs, replicasets.MaxReplicasAnnotation)
	if !ok || before == 0 {
		before = replicas // somebody tampered with the annotation
	}
	if before == 0 {
		return 0
	}
	grown := math.Round(float64(size) * float64(l.MaxReplicas()) / float64(before))
	return int32(min(grown, math.MaxInt32)) - size
}
