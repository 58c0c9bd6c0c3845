package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPlace(t *testing.T) {
	node := func(name string, change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": name}}}
		for _, f := range change {
			f(n)
		}
		return n
	}
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	pinned := with(pod("a"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} })
	tests := []struct {
		name         string
		pod          *corev1.Pod
		candidates   []candidate
		want, reason string
	}{
		{"no nodes", pod("a"), nil, "", "no nodes available to schedule pods"},
		{"the first of equals", pod("a"), []candidate{{node("a"), 1, 5}, {node("b"), 1, 5}}, "a", ""},
		{"the least loaded", pod("a"), []candidate{{node("a"), 2, 5}, {node("b"), 1, 5}}, "b", ""},
		{"not a full one", pod("a"), []candidate{{node("a"), 1, 1}, {node("b"), 4, 5}}, "b", ""},
		{"not a cordoned one", pod("a"), []candidate{{node("a", cordon), 0, 5}, {node("b"), 4, 5}}, "b", ""},
		{"the one selected", pinned, []candidate{{node("a"), 0, 5}, {node("b"), 4, 5}}, "b", ""},
		{
			"none", pinned,
			[]candidate{{node("a"), 0, 5}, {node("b"), 5, 5}, {node("c", cordon), 0, 5}},
			"",
			"0/3 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, 1 " +
				"node(s) " +
				"were unschedulable.",
		},
	}
	for _, tt := range tests {
		if got, reason := place(tt.pod, tt.candidates); got != tt.want || reason != tt.reason {
			t.Errorf("%s: %q, %q", tt.name, got, reason)
		}
	}
}

func TestSchedulable(t *testing.T) {
	unbound := func(change func(*corev1.Pod)) *corev1.Pod {
		return with(pod("a"), func(p *corev1.Pod) { p.Spec.NodeName = ""; change(p) })
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"yes":           {unbound(func(*corev1.Pod) {}), true},
		"by name":       {unbound(func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }), true},
		"another's":     {unbound(func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }), false},
		"bound":         {pod("a"), false},
		"being deleted": {unbound(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(at(0)) }), false},
		"gated": {
			unbound(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), false,
		},
		"failed unplaced": {unbound(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
	} {
		if got := schedulable(tt.pod); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
