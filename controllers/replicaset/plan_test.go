package replicaset

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func nothingRelated() []*corev1.Pod { return nil }

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet and manageReplicas
func TestPlanPods(t *testing.T) {
	unset := func(s *appsv1.ReplicaSet) { s.Spec.Replicas = nil }
	tests := []struct {
		name    string
		set     *appsv1.ReplicaSet
		active  int
		pending bool
		burst   int
		create  int
		victims int
	}{
		{"as many as asked for", newSet(3), 3, false, 500, 0, 0},
		{"none and none asked for", newSet(0), 0, false, 500, 0, 0},
		{"some missing", newSet(5), 3, false, 500, 2, 0},
		{"some too many", newSet(1), 3, false, 500, 0, 2},
		{"all too many", newSet(0), 3, false, 500, 0, 3},
		{"missing more than a burst", newSet(800), 100, false, 500, 500, 0},
		{"too many by more than a burst", newSet(100), 800, false, 500, 0, 500},
		{"earlier writes not seen yet: nothing is created", newSet(5), 3, true, 500, 0, 0},
		{"earlier writes not seen yet: nothing is deleted", newSet(1), 3, true, 500, 0, 0},
		{"being deleted: nothing is created", newSet(5, setDeleting), 3, false, 500, 0, 0},
		{"being deleted: nothing is deleted", newSet(1, setDeleting), 3, false, 500, 0, 0},
		{"no number counts as the API's default", newSet(0, unset), 0, false, 500, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := observed{
				set: tt.set, active: numbered(tt.active), settled: !tt.pending, related: nothingRelated,
				now: epoch,
			}
			got := planPods(o, tt.burst)
			if got.create != tt.create || len(got.victims) != tt.victims {
				t.Errorf("create %d, delete %d; want create %d, delete %d", got.create, len(got.victims), tt.create,
					tt.victims)
			}
		})
	}
}

// Ranking looks at the pods of all related sets, so it is skipped when it decides nothing.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, getPodsToDelete
func TestVictimsAreRankedOnlyWhenSomeStay(t *testing.T) {
	asked := 0
	o := observed{
		set: newSet(0), active: numbered(3), settled: true, now: epoch,
		related: func() []*corev1.Pod { asked++; return nil },
	}
	if got := planPods(o, 500); len(got.victims) != 3 || asked != 0 {
		t.Errorf("%d victims, related pods asked for %d times; want 3, never", len(got.victims), asked)
	}
	if got := planPods(o, 2); len(got.victims) != 2 || asked != 1 {
		t.Errorf("%d victims, related pods asked for %d times; want 2, once", len(got.victims), asked)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, getPodsRankedByRelatedPodsOnSameNode
func TestVictimsComeFromCrowdedNodes(t *testing.T) {
	on := func(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	a, b, c := newPod("a", on("n1")), newPod("b", on("n2")), newPod("c", on("n3"))
	older1, older2 := newPod("older-1", on("n2")), newPod("older-2", on("n3"))
	finished := newPod("older-3", on("n3"), inPhase(corev1.PodSucceeded))
	leaving := newPod("older-4", on("n3"), deleting)
	crowd := []*corev1.Pod{a, b, c, older1, older2, newPod("older-5", on("n2")), finished, leaving}
	o := observed{
		set: newSet(1), active: []*corev1.Pod{a, b, c}, settled: true, now: epoch,
		related: func() []*corev1.Pod { return crowd },
	}
	// There are three active related pods on n2, two on n3 and one on n1; finished and terminating pods do not count.
	if diff := cmp.Diff([]string{"b", "c"}, namesOf(planPods(o, 500).victims)); diff != "" {
		t.Errorf("victims (-want +got):\n%s", diff)
	}
}

// randomPod returns a pod whose fields relevant to the order are drawn from few values, so that ties are common.
func randomPod(r *rand.Rand, name string) *corev1.Pod {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	pod := newPod(name, func(p *corev1.Pod) {
		p.UID = types.UID(strconv.Itoa(r.IntN(1000)) + name)
		p.Spec.NodeName = pick("", "n1", "n2")
		p.Status.Phase = corev1.PodPhase(pick("Pending", "Running", "Unknown", ""))
		p.Status.Conditions[0].Status = metav1ConditionStatus(pick("True", "False"))
		p.Annotations = map[string]string{
			corev1.PodDeletionCost: pick("", "0", "5", "-3", "+4", "007", "x", "99999999999"),
		}
		p.CreationTimestamp = metav1.Time{Time: epoch.Add(-time.Duration(r.IntN(4)) * time.Minute)}
		p.Status.Conditions[0].LastTransitionTime = metav1.Time{
			Time: epoch.Add(-time.Duration(r.IntN(4)) * time.Minute),
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: int32(r.IntN(2))}}
	})
	if r.IntN(8) == 0 {
		pod.CreationTimestamp = metav1.Time{}
	}
	return pod
}

func metav1ConditionStatus(s string) corev1.ConditionStatus { return corev1.ConditionStatus(s) }

// FuzzPlanPods checks what must hold for every plan.
func FuzzPlanPods(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(5), uint8(10), true)
	f.Add(uint64(2), uint8(5), uint8(2), uint8(2), true)
	f.Add(uint64(3), uint8(9), uint8(0), uint8(200), false)
	f.Fuzz(func(t *testing.T, seed uint64, replicas, active, burst uint8, settled bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		list := make([]*corev1.Pod, active)
		for i := range list {
			list[i] = randomPod(r, strconv.Itoa(i))
		}
		before := slices.Clone(list)
		limit := int(burst) + 1
		o := observed{
			set: newSet(int32(replicas)), active: list, settled: settled, now: epoch,
			related: func() []*corev1.Pod { return list },
		}
		got := planPods(o, limit)

		if got.create > 0 && len(got.victims) > 0 {
			t.Fatal("creates and deletes at once")
		}
		if got.create > limit || len(got.victims) > limit {
			t.Fatalf("create %d, delete %d: more than the burst of %d", got.create, len(got.victims), limit)
		}
		if !settled && (got.create != 0 || len(got.victims) != 0) {
			t.Fatal("acts on a cache that is known to be behind")
		}
		after := int(active) + got.create - len(got.victims)
		if settled && after != int(replicas) && got.create+len(got.victims) != limit {
			t.Fatalf("%d pods after the plan, want %d", after, replicas)
		}
		if int(active) >= int(replicas) && after < int(replicas) || int(active) <= int(replicas) &&
			after > int(replicas) {
			t.Fatalf("goes from %d past %d to %d", active, replicas, after)
		}
		if !slices.Equal(before, list) {
			t.Fatal("planning reordered what was observed")
		}
		seen := map[string]bool{}
		for _, pod := range got.victims {
			if seen[pod.Name] || !slices.Contains(list, pod) {
				t.Fatalf("victim %s is chosen twice or is none of the pods", pod.Name)
			}
			seen[pod.Name] = true
		}
		if again := planPods(o, limit); !slices.Equal(again.victims, got.victims) || again.create != got.create {
			t.Fatal("the same plan comes out differently")
		}
		checkOrder(t, o, got.victims)
	})
}

// checkOrder requires that every deleted pod comes before every remaining pod by the rules that have no cycles: those
// before ready times.
func checkOrder(t *testing.T, o observed, victims []*corev1.Pod) {
	t.Helper()
	order := deletionOrder{now: o.now}
	coarse := func(p *corev1.Pod) *corev1.Pod {
		p = p.DeepCopy()
		p.UID, p.CreationTimestamp, p.Status.ContainerStatuses = "", metav1.Time{}, nil
		p.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: epoch}
		return p
	}
	order.colocated = colocation(o.related())
	for _, kept := range o.active {
		if slices.Contains(victims, kept) {
			continue
		}
		for _, victim := range victims {
			if order.compare(coarse(kept), coarse(victim)) < 0 && len(victims) < len(o.active) {
				t.Fatalf("%s stays although %s, which goes, is worth more", kept.Name, victim.Name)
			}
		}
	}
}
