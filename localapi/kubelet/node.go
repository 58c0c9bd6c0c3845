package kubelet

import (
	"maps"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeName returns the name of the i-th node, counted from 0.
func nodeName(i int) string { return "node-" + itoa(i+1) }

// nodeIP returns the address of the i-th node: 172.18.0.2 and so on, as in a cluster whose nodes are containers.
func nodeIP(i int) string {
	n := i + 2
	return netip.AddrFrom4([4]byte{172, 18, byte(n >> 8), byte(n)}).String()
}

// newNode returns the i-th node as it registers.
func newNode(i, pods int, now time.Time) *corev1.Node {
	name := nodeName(i)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	node.Status = wantedNodeStatus(node, i, pods, metav1.NewTime(now).Rfc3339Copy())
	return node
}

// wantedNodeStatus returns the status that the node should report: Ready, with room for the given number of pods. It
// keeps what others wrote, such as extended resources, which it makes allocatable as a real kubelet does, and the times
// of conditions that do not change.
func wantedNodeStatus(node *corev1.Node, i, pods int, now metav1.Time) corev1.NodeStatus {
	status := *node.Status.DeepCopy()
	if status.Capacity == nil {
		status.Capacity = corev1.ResourceList{}
	}
	maps.Copy(status.Capacity, corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("8"),
		corev1.ResourceMemory:           resource.MustParse("32Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		corev1.ResourcePods:             *resource.NewQuantity(int64(pods), resource.DecimalSI),
	})
	status.Allocatable = status.Capacity.DeepCopy()
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: nodeIP(i)},
		{Type: corev1.NodeHostName, Address: nodeName(i)},
	}
	status.NodeInfo.OperatingSystem, status.NodeInfo.Architecture = "linux", "amd64"
	status.NodeInfo.OSImage, status.NodeInfo.ContainerRuntimeVersion = "none", "fake://1"
	status.NodeInfo.KubeletVersion = "v1.37.2-fake"
	for _, c := range []corev1.NodeCondition{
		{
			Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory",
			Message: "kubelet has sufficient memory available",
		},
		{
			Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure",
			Message: "kubelet has no disk pressure",
		},
		{
			Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID",
			Message: "kubelet has sufficient PID available",
		},
		{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message: "kubelet is posting ready status",
		},
	} {
		setNodeCondition(&status, c, now)
	}
	return status
}

func setNodeCondition(status *corev1.NodeStatus, c corev1.NodeCondition, now metav1.Time) {
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status != c.Status {
			c.LastHeartbeatTime, c.LastTransitionTime = now, now
			*old = c
		}
		return
	}
	c.LastHeartbeatTime, c.LastTransitionTime = now, now
	status.Conditions = append(status.Conditions, c)
}

func sameNodeStatus(a, b corev1.NodeStatus) bool { return equality.Semantic.DeepEqual(a, b) }
