package replicasets

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

// Size is how many pods a ReplicaSet asks for.
func Size(rs *appsv1.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 1) }

// TotalSize is how many pods the ReplicaSets ask for together.
func TotalSize(rss []*appsv1.ReplicaSet) int32 { return Sum(rss, Size) }

// Sum adds up a number of each ReplicaSet.
func Sum(rss []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) int32 {
	var total int32
	for _, rs := range rss {
		total += of(rs)
	}
	return total
}

// Active returns the ReplicaSets that ask for pods, in their order.
func Active(rss []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var found []*appsv1.ReplicaSet
	for _, rs := range rss {
		if Size(rs) > 0 {
			found = append(found, rs)
		}
	}
	return found
}

// byAge orders ReplicaSets from old to new, and by name if they were created in the same second.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ReplicaSetsByCreationTimestamp
func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// BySizeThenNewer orders ReplicaSets from large to small, and from new to old if their sizes are equal. It is the order
// in which they grow.
func BySizeThenNewer(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(Size(b), Size(a)), byAge(b, a))
}

// BySizeThenOlder orders ReplicaSets from large to small, and from old to new if their sizes are equal. It is the order
// in which they shrink.
func BySizeThenOlder(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(Size(b), Size(a)), byAge(a, b))
}

// Split separates the new ReplicaSet of a Deployment from the old ones. The new one has the Deployment's template; if
// several do, which happens after an upgrade that changed the hash, it is the oldest of them. It is nil if the
// ReplicaSet for the current template does not exist yet. The old ones are returned oldest first.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, FindNewReplicaSet and
// FindOldReplicaSets
func Split(d *appsv1.Deployment, rss []*appsv1.ReplicaSet) (newRS *appsv1.ReplicaSet, oldRSs []*appsv1.ReplicaSet) {
	rss = slices.SortedFunc(slices.Values(rss), byAge)
	i := slices.IndexFunc(rss,
		func(rs *appsv1.ReplicaSet) bool { return SameTemplate(&rs.Spec.Template, &d.Spec.Template) })
	if i < 0 {
		return nil, rss
	}
	newRS = rss[i]
	return newRS, slices.Delete(rss, i, i+1)
}
