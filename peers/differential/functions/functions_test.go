//lint:file-ignore SA1019 Endpoints are deprecated, and one of the things compared.

package functions

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
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

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/replicaset"
)

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

// FuzzPlan: which sizes a sync gives to the ReplicaSets when the Deployment's own has changed, how the new one is made,
// and whether enough pods are available.
func FuzzPlan(f *testing.F) {
	fuzz(f, func(t *testing.T, r maker) {
		d, sets := r.deployment()
		plan, err := deployment.Plan(deployment.Observed{Deployment: d, ReplicaSets: sets, Now: time.Unix(5000, 0)})
		var wantErr error
		if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
			_, _, wantErr = util.ResolveFenceposts(rolling.MaxSurge, rolling.MaxUnavailable, *d.Spec.Replicas)
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		if err != nil {
			return
		}
		compareAvailable(t, d, sets, plan.String())
		newRS := util.FindNewReplicaSet(d, sets)
		_, old := util.FindOldReplicaSets(d, sets)
		if resized(d, sets) {
			compareSizes(t, sets, scaled(d, newRS, old), plan.String())
			return
		}
		for line := range strings.Lines(plan.String()) {
			if strings.HasPrefix(line, "create ") {
				compareCreated(t, d, sets, line)
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

// planned matches the lines of a plan that give a ReplicaSet a size.
var planned = regexp.MustCompile(`(?m)^(?:edit|create) (\S+) replicas=(\d+)`)

// compareSizes compares what the ReplicaSets come to; a plan leaves out what stays as it is.
func compareSizes(t *testing.T, sets []*appsv1.ReplicaSet, want map[string]int32, plan string) {
	t.Helper()
	sizes := map[string]string{}
	for _, m := range planned.FindAllStringSubmatch(plan, -1) {
		sizes[m[1]] = m[2]
	}
	for _, rs := range sets {
		was := fmt.Sprint(*rs.Spec.Replicas)
		got, expected := was, was
		if n, ok := sizes[rs.Name]; ok {
			got = n
		}
		if n, ok := want[rs.Name]; ok {
			expected = fmt.Sprint(n)
		}
		if got != expected {
			t.Errorf("%s, which has %s pods, gets %s, want %s; the plan:\n%s", rs.Name, was, got, expected, plan)
		}
	}
}

// compareAvailable compares the condition Available of the last status that the plan writes.
func compareAvailable(t *testing.T, d *appsv1.Deployment, sets []*appsv1.ReplicaSet, plan string) {
	t.Helper()
	i := strings.LastIndex(plan, " Available=")
	if i < 0 {
		return
	}
	got := strings.HasPrefix(plan[i:], " Available=True")
	available := util.GetAvailableReplicaCountForReplicaSets(sets)
	if want := available >= *d.Spec.Replicas-util.MaxUnavailable(*d); got != want {
		t.Errorf("available: %t, want %t, of %d; the plan:\n%s", got, want, available, plan)
	}
}

// compareCreated compares the step that creates the new ReplicaSet with one made of upstream's functions.
func compareCreated(t *testing.T, d *appsv1.Deployment, sets []*appsv1.ReplicaSet, got string) {
	t.Helper()
	rs := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: new(int32)}}
	n, err := util.NewRSNewReplicas(d, append(slices.Clone(sets), rs), rs)
	if err != nil {
		t.Fatal(err)
	}
	revision := util.MaxRevision(klog.Background(), sets) + 1
	util.SetNewReplicaSetAnnotations(context.Background(), d, rs, fmt.Sprint(revision), false, 2000)
	util.SetReplicasAnnotations(rs, *d.Spec.Replicas, *d.Spec.Replicas+util.MaxSurge(*d))
	hash := controller.ComputeHash(&d.Spec.Template, d.Status.CollisionCount)
	want := fmt.Sprintf("create web-%s replicas=%d", hash, n)
	for _, key := range slices.Sorted(maps.Keys(rs.Annotations)) {
		want += fmt.Sprintf(" %s=%s", strings.TrimPrefix(key, "deployment.kubernetes.io/"), rs.Annotations[key])
	}
	got, _, _ = strings.Cut(strings.TrimSuffix(got, "\n"), " [")
	if got != want {
		t.Errorf("the plan is to\n%s, want\n%s", got, want)
	}
}
