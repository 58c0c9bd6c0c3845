package deployment

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// size is how many pods a ReplicaSet asks for.
func size(rs *appsv1.ReplicaSet) int32 { return ptr.Deref(rs.Spec.Replicas, 1) }

// totalSize is how many pods the ReplicaSets ask for together.
func totalSize(rss []*appsv1.ReplicaSet) int32 {
	return sum(rss, size)
}

func sum(rss []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) int32 {
	var total int32
	for _, rs := range rss {
		total += of(rs)
	}
	return total
}

// The counts that a ReplicaSet's own controller reports.
func statusReplicas(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas }
func ready(rs *appsv1.ReplicaSet) int32          { return rs.Status.ReadyReplicas }
func available(rs *appsv1.ReplicaSet) int32      { return rs.Status.AvailableReplicas }

// active returns those ReplicaSets that ask for pods, in their order.
func active(rss []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var found []*appsv1.ReplicaSet
	for _, rs := range rss {
		if size(rs) > 0 {
			found = append(found, rs)
		}
	}
	return found
}

// byAge orders ReplicaSets from old to new; those of one second by name.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ReplicaSetsByCreationTimestamp
func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// bySizeThenNewer orders from large to small, those of one size from new to old: the order of growing.
func bySizeThenNewer(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(size(b), size(a)), byAge(b, a))
}

// bySizeThenOlder orders from large to small, those of one size from old to new: the order of shrinking.
func bySizeThenOlder(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(size(b), size(a)), byAge(a, b))
}

// split finds, among a Deployment's ReplicaSets, the new one: the oldest whose template is the Deployment's. There can
// be several after an upgrade that changed the hash. The others are old, and come back oldest first. It is nil when
// the ReplicaSet for the current template does not exist yet.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, FindNewReplicaSet and
// FindOldReplicaSets
func split(d *appsv1.Deployment, rss []*appsv1.ReplicaSet) (newRS *appsv1.ReplicaSet, oldRSs []*appsv1.ReplicaSet) {
	rss = slices.SortedFunc(slices.Values(rss), byAge)
	i := slices.IndexFunc(rss,
		func(rs *appsv1.ReplicaSet) bool { return sameTemplate(&rs.Spec.Template, &d.Spec.Template) })
	if i < 0 {
		return nil, rss
	}
	newRS = rss[i]
	return newRS, slices.Delete(rss, i, i+1)
}

// sameTemplate compares two pod templates but for the pod-template-hash label, which a Deployment's own lacks.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, EqualIgnoreHash
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := *a, *b
	x.Labels, y.Labels = withoutHash(a.Labels), withoutHash(b.Labels)
	return equality.Semantic.DeepEqual(&x, &y)
}

func withoutHash(labels map[string]string) map[string]string {
	return without(labels, appsv1.DefaultDeploymentUniqueLabelKey)
}

// without is m less one key; m itself where it lacks the key.
func without(m map[string]string, key string) map[string]string {
	if _, ok := m[key]; !ok {
		return m
	}
	m = maps.Clone(m)
	delete(m, key)
	return m
}
