package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestNodeStatus(t *testing.T) {
	n := newNode(1, 110, t0)
	if n.Name != "node-2" || n.Status.Addresses[0].Address != "172.18.0.3" || n.Status.Capacity.Pods().Value() != 110 {
		t.Errorf("%s %v", n.Name, n.Status)
	}
	if !sameNodeStatus(n.Status, wantedNodeStatus(n, 1, 110, at(99))) {
		t.Error("time alone changes the status")
	}
	n.Status.Conditions[3].Status = corev1.ConditionUnknown
	n.Status.Capacity["example.com/gpu"] = resource.MustParse("2")
	n.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("1")
	n.Status.Allocatable["example.com/gone"] = resource.MustParse("1")
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Foreign"})
	got := wantedNodeStatus(n, 1, 110, at(99))
	if c := got.Conditions[3]; c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Equal(ptr.To(at(99))) ||
		len(got.Conditions) != 5 {
		t.Errorf("%+v", got.Conditions)
	}
	if gpu := got.Allocatable["example.com/gpu"]; gpu.Value() != 2 || got.Capacity.Cpu().Value() != 8 ||
		!equality.Semantic.DeepEqual(got.Capacity, got.Allocatable) {
		t.Errorf("capacity %v, allocatable %v", got.Capacity, got.Allocatable)
	}
}
