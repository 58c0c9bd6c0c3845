package replicaset

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// edit turns any change into a podOption.
func edit(change func(p *corev1.Pod)) podOption { return change }

func restarts(count int32) podOption {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a"}, {Name: "b", RestartCount: count}}
	}
}

func initRestarts(count int32, policy *corev1.ContainerRestartPolicy) podOption {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", RestartPolicy: policy}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", RestartCount: count}}
	}
}

func createdAt(t time.Time) podOption {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{Time: t} }
}

func cost(value string) podOption {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: value} }
}

// Every row has two pods that differ in one rule, and in a later rule the other way round.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ActivePodsWithRanks.Less
func TestDeletionOrder(t *testing.T) {
	unplaced := edit(func(p *corev1.Pod) { p.Spec.NodeName = "" })
	crowded := edit(func(p *corev1.Pod) { p.Spec.NodeName = "crowded" })
	sidecar := ptr.To(corev1.ContainerRestartPolicyAlways)
	ago := func(d time.Duration) time.Time { return epoch.Add(-d) }
	tests := []struct {
		name        string
		first, then []podOption
	}{
		{
			"without a node before placed, whatever the phase",
			[]podOption{unplaced, inPhase(corev1.PodRunning)},
			[]podOption{inPhase(corev1.PodPending)},
		},
		{
			"pending before running, whatever the readiness",
			[]podOption{inPhase(corev1.PodPending)},
			[]podOption{notReady},
		},
		{
			"pending before unknown",
			[]podOption{inPhase(corev1.PodPending)},
			[]podOption{inPhase(corev1.PodUnknown), notReady},
		},
		{"unknown before running", []podOption{inPhase(corev1.PodUnknown)}, []podOption{notReady}},
		{"no phase is pending", []podOption{inPhase("")}, []podOption{inPhase(corev1.PodUnknown)}},
		{"not ready before ready, whatever the cost", []podOption{notReady, cost("10")}, []podOption{cost("-10")}},
		{"no condition is not ready", []podOption{edit(func(p *corev1.Pod) { p.Status.Conditions = nil })}, nil},
		{"lower cost first, whatever the neighbours", []podOption{cost("-1")}, []podOption{crowded}},
		{"no cost is zero", nil, []podOption{cost("1")}},
		{"a plus sign is no cost", []podOption{cost("+7")}, []podOption{cost("1")}},
		{"leading zeros are no cost", []podOption{cost("007")}, []podOption{cost("1")}},
		{"what is no number is no cost", []podOption{cost("much")}, []podOption{cost("1")}},
		{"more than 32 bits is no cost", []podOption{cost("2147483648")}, []podOption{cost("1")}},
		{"the largest cost", []podOption{cost("2147483646")}, []podOption{cost("2147483647")}},
		{"the smallest cost", []podOption{cost("-2147483648")}, []podOption{cost("-2147483647")}},
		{
			"crowded node first, however long ready",
			[]podOption{crowded, readySince(ago(100 * time.Hour))},
			[]podOption{readySince(ago(time.Hour))},
		},
		{
			"ready for less long first, whatever the restarts",
			[]podOption{readySince(ago(time.Minute))},
			[]podOption{readySince(ago(time.Hour)), restarts(9)},
		},
		{
			"ready since no known time first",
			[]podOption{readySince(time.Time{})},
			[]podOption{readySince(ago(time.Second))},
		},
		{
			"ready in the future first",
			[]podOption{readySince(ago(-time.Minute))},
			[]podOption{readySince(ago(time.Nanosecond))},
		},
		{
			"more restarts first, whatever the age",
			[]podOption{restarts(2), createdAt(ago(100 * time.Hour))},
			[]podOption{restarts(1), createdAt(ago(time.Second))},
		},
		{
			"restarts of containers before those of sidecars",
			[]podOption{restarts(1)},
			[]podOption{initRestarts(9, sidecar)},
		},
		{
			"more restarts of sidecars first",
			[]podOption{initRestarts(2, sidecar)},
			[]podOption{initRestarts(1, sidecar)},
		},
		{
			"plain init containers do not count",
			[]podOption{initRestarts(0, nil), createdAt(ago(time.Minute))},
			[]podOption{initRestarts(9, nil), createdAt(ago(time.Hour))},
		},
		{"younger first", []podOption{createdAt(ago(time.Minute))}, []podOption{createdAt(ago(time.Hour))}},
		{"of unknown age first", []podOption{createdAt(time.Time{})}, []podOption{createdAt(ago(time.Minute))}},
		{
			"not ready pods: younger first",
			[]podOption{notReady, createdAt(ago(time.Minute))},
			[]podOption{notReady, createdAt(ago(time.Hour))},
		},
		{
			"about the same age: by uid",
			[]podOption{createdAt(ago(130 * time.Minute)), uid("a")},
			[]podOption{createdAt(ago(120 * time.Minute)), uid("b")},
		},
		{
			"ready about as long: by uid",
			[]podOption{readySince(ago(130 * time.Minute)), uid("a")},
			[]podOption{readySince(ago(120 * time.Minute)), uid("b"), restarts(9)},
		},
	}
	order := deletionOrder{now: epoch, colocated: map[string]int{"node-1": 1, "crowded": 2}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first, then := newPod("first", tt.first...), newPod("then", tt.then...)
			if d := order.compare(first, then); d >= 0 {
				t.Errorf("compare = %d, want negative", d)
			}
			if d := order.compare(then, first); d <= 0 {
				t.Errorf("the other way round: compare = %d, want positive", d)
			}
		})
	}
	t.Run("equal in everything", func(t *testing.T) {
		if d := order.compare(newPod("a"), newPod("b")); d != 0 {
			t.Errorf("compare = %d, want 0", d)
		}
	})
}

func uid(value types.UID) podOption { return func(p *corev1.Pod) { p.UID = value } }

// The boundary between two powers of two, to the nanosecond.
func TestAgeRank(t *testing.T) {
	order := deletionOrder{now: epoch}
	tests := map[time.Duration]int64{-1: -1, 0: -1, 1: 0, 2: 1, 3: 1, 4: 2, 1<<32 - 1: 31, 1 << 32: 32, 1<<32 + 1: 32}
	for age, want := range tests {
		if got := order.ageRank(&metav1.Time{Time: epoch.Add(-age)}); got != want {
			t.Errorf("age %d ns: rank %d, want %d", age, got, want)
		}
	}
}

// An order that is not antisymmetric would make sorting meaningless.
func FuzzDeletionOrder(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		order := deletionOrder{now: epoch, colocated: map[string]int{"n1": 1, "n2": 2}}
		list := make([]*corev1.Pod, 6)
		for i := range list {
			list[i] = randomPod(r, strconv.Itoa(i))
		}
		for _, a := range list {
			for _, b := range list {
				if order.compare(a, b) != -order.compare(b, a) {
					t.Fatalf("%v and %v: %d and %d", a, b, order.compare(a, b), order.compare(b, a))
				}
			}
		}
	})
}

// The order has cycles; this test has the example from its comment.
func TestDeletionOrderHasCycles(t *testing.T) {
	t1, t2 := epoch.Add(-130*time.Minute), epoch.Add(-120*time.Minute)
	a := newPod("a", readySince(t1), uid("1"))
	c := newPod("c", readySince(t2), uid("2"))
	b := newPod("b", readySince(t1), uid("3"), restarts(1))
	order := deletionOrder{now: epoch}
	if order.compare(a, c) >= 0 || order.compare(c, b) >= 0 || order.compare(b, a) >= 0 {
		t.Error("a before c before b before a no longer holds: mend the comment of deletionOrder, and plan.go's")
	}
}
