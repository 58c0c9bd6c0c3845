//lint:file-ignore SA1019 Endpoints are deprecated, and one of the things compared.

package functions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	repack "k8s.io/kubernetes/pkg/api/v1/endpoints"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/replicaset"
)

// FuzzComputeHash: the names of ReplicaSets and the label pod-template-hash are the real ones.
func FuzzComputeHash(f *testing.F) {
	fuzz(f, func(t *testing.T, r maker) {
		template := r.template()
		var collisions *int32
		if r.maybe() {
			collisions = ptr.To(r.Int32())
		}
		if got, want := deployment.ComputeHash(&template, collisions),
			controller.ComputeHash(&template, collisions); got != want {
			t.Errorf("hash %q, want %q, of %+v", got, want, template)
		}
	})
}

// FuzzResolveFenceposts: how many pods a percentage is.
func FuzzResolveFenceposts(f *testing.F) {
	fuzz(f, func(t *testing.T, r maker) {
		surge, unavailable, replicas := r.fencepost(), r.fencepost(), r.Int32N(50)
		gotS, gotU, err := deployment.ResolveFenceposts(surge, unavailable, replicas)
		wantS, wantU, wantErr := util.ResolveFenceposts(surge, unavailable, replicas)
		if gotS != wantS || gotU != wantU || (err == nil) != (wantErr == nil) {
			t.Errorf("of %d: surge %v is %d, unavailable %v is %d (%v), want %d and %d (%v)", replicas, surge, gotS,
				unavailable, gotU, err, wantS, wantU, wantErr)
		}
	})
}

// FuzzRepackSubsets: how Endpoints are laid out, byte for byte.
func FuzzRepackSubsets(f *testing.F) {
	fuzz(f, func(t *testing.T, r maker) {
		var subsets []corev1.EndpointSubset
		address := func() corev1.EndpointAddress {
			return corev1.EndpointAddress{
				IP:        fmt.Sprintf("10.0.0.%d", r.IntN(6)),
				TargetRef: &corev1.ObjectReference{UID: types.UID(r.word())},
			}
		}
		for range r.IntN(5) {
			var s corev1.EndpointSubset
			for range r.IntN(4) {
				s.Addresses = append(s.Addresses, address())
			}
			for range r.IntN(3) {
				s.NotReadyAddresses = append(s.NotReadyAddresses, address())
			}
			for range r.IntN(3) {
				s.Ports = append(s.Ports,
					corev1.EndpointPort{
						Name: r.word(), Port: r.Int32N(3) + 1,
						Protocol: pick(r, corev1.ProtocolTCP, corev1.ProtocolUDP),
					})
			}
			subsets = append(subsets, s)
		}
		if got, want := endpoints.RepackSubsets(subsets),
			repack.RepackSubsets(subsets); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("of %+v:\n got %+v\nwant %+v", subsets, got, want)
		}
	})
}

// FuzzDeletionOrder: which of two pods goes first.
func FuzzDeletionOrder(f *testing.F) {
	fuzz(f, func(t *testing.T, r maker) {
		now := time.Unix(1_000_000, 0)
		pods := r.pods(2, now)
		related := append(r.pods(3, now), pods...)
		rank := func(p *corev1.Pod) (n int) {
			for _, other := range related {
				if other.Spec.NodeName == p.Spec.NodeName && controller.IsPodActive(other) {
					n++
				}
			}
			return n
		}
		theirs := controller.ActivePodsWithRanks{
			Pods: pods, Rank: []int{rank(pods[0]), rank(pods[1])},
			Now: metav1.NewTime(now),
		}
		compare := replicaset.CompareForDeletion(related, now)
		if got, want := compare(pods[0], pods[1]) < 0, theirs.Less(0, 1); got != want {
			t.Errorf("the first goes first: %t, want %t\n%+v\n%+v", got, want, pods[0], pods[1])
		}
		if got, want := compare(pods[1], pods[0]) < 0, theirs.Less(1, 0); got != want {
			t.Errorf("the second goes first: %t, want %t\n%+v\n%+v", got, want, pods[0], pods[1])
		}
	})
}

// FuzzPlan: which sizes a sync gives to the ReplicaSets when the Deployment's own has changed, and how the new one is
// made.
func FuzzPlan(f *testing.F) {
	fuzz(f, func(t *testing.T, r maker) {
		d, sets := r.deployment()
		plan, err := deployment.NewPlan(deployment.Observed{Deployment: d, ReplicaSets: sets, Now: time.Unix(5000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		newRS := util.FindNewReplicaSet(d, sets)
		_, old := util.FindOldReplicaSets(d, sets)
		if resized(d, sets) {
			compareSizes(t, sets, scaled(d, newRS, old), plan)
			return
		}
		for _, s := range plan.Steps {
			if c, ok := s.(deployment.CreateReplicaSet); ok {
				compareCreated(t, d, sets, c.ReplicaSet)
			}
		}
	})
}

// resized is upstream's isScalingEvent.
func resized(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(controller.FilterActiveReplicaSets(sets), func(rs *appsv1.ReplicaSet) bool {
		desired, ok := util.GetDesiredReplicasAnnotation(klog.Background(), rs)
		return ok && desired != *d.Spec.Replicas
	})
}

// scaled is upstream's scale, put together from the functions it uses: the sizes of the ReplicaSets afterwards.
func scaled(d *appsv1.Deployment, newRS *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) map[string]int32 {
	sizes := map[string]int32{}
	if only := util.FindActiveOrLatest(newRS, old); only != nil {
		sizes[only.Name] = *d.Spec.Replicas
		return sizes
	}
	if util.IsSaturated(d, newRS) {
		for _, rs := range controller.FilterActiveReplicaSets(old) {
			sizes[rs.Name] = 0
		}
		return sizes
	}
	if !util.IsRollingUpdate(d) {
		return sizes
	}
	all := controller.FilterActiveReplicaSets(append(slices.Clone(old), newRS))
	allowed := int32(0)
	if *d.Spec.Replicas > 0 {
		allowed = *d.Spec.Replicas + util.MaxSurge(*d)
	}
	toAdd := allowed - util.GetReplicaCountForReplicaSets(all)
	if toAdd > 0 {
		sort.Sort(controller.ReplicaSetsBySizeNewer(all))
	} else if toAdd < 0 {
		sort.Sort(controller.ReplicaSetsBySizeOlder(all))
	}
	added := int32(0)
	for _, rs := range all {
		sizes[rs.Name] = *rs.Spec.Replicas
		if toAdd != 0 {
			share := util.GetReplicaSetProportion(klog.Background(), rs, *d, toAdd, added)
			sizes[rs.Name] += share
			added += share
		}
	}
	if toAdd != 0 {
		sizes[all[0].Name] = max(0, sizes[all[0].Name]+toAdd-added)
	}
	return sizes
}

// sizesOf are the sizes that a plan gives.
func sizesOf(p deployment.Plan) map[string]int32 {
	sizes := map[string]int32{}
	for _, s := range p.Steps {
		if e, ok := s.(deployment.EditReplicaSet); ok && e.Replicas != nil {
			sizes[e.ReplicaSet.Name] = *e.Replicas
		}
	}
	return sizes
}

// compareSizes compares what the ReplicaSets come to; a plan leaves out what stays as it is.
func compareSizes(t *testing.T, sets []*appsv1.ReplicaSet, want map[string]int32, plan deployment.Plan) {
	t.Helper()
	planned := sizesOf(plan)
	for _, rs := range sets {
		got, expected := *rs.Spec.Replicas, *rs.Spec.Replicas
		if n, ok := planned[rs.Name]; ok {
			got = n
		}
		if n, ok := want[rs.Name]; ok {
			expected = n
		}
		if got != expected {
			t.Errorf("%s, which has %d pods, gets %d, want %d; the plan:\n%s", rs.Name, *rs.Spec.Replicas, got,
				expected, plan)
		}
	}
}

// compareCreated compares the new ReplicaSet with one made of upstream's functions.
func compareCreated(t *testing.T, d *appsv1.Deployment, sets []*appsv1.ReplicaSet, got *appsv1.ReplicaSet) {
	t.Helper()
	want := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: new(int32)}}
	n, err := util.NewRSNewReplicas(d, append(slices.Clone(sets), want), want)
	if err != nil {
		t.Fatal(err)
	}
	if *got.Spec.Replicas != n {
		t.Errorf("the new ReplicaSet gets %d pods, want %d", *got.Spec.Replicas, n)
	}
	revision := util.MaxRevision(klog.Background(), sets) + 1
	want.Annotations = nil
	util.SetNewReplicaSetAnnotations(context.Background(), d, want, fmt.Sprint(revision), false, 2000)
	util.SetReplicasAnnotations(want, *d.Spec.Replicas, *d.Spec.Replicas+util.MaxSurge(*d))
	if !maps.Equal(got.Annotations, want.Annotations) {
		t.Errorf("annotations %v, want %v", got.Annotations, want.Annotations)
	}
	if name := "web-" + controller.ComputeHash(&d.Spec.Template, nil); got.Name != name {
		t.Errorf("its name is %s, want %s", got.Name, name)
	}
}
