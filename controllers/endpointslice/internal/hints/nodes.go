package hints

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Zone is the zone of a node, or empty if it does not have the label.
func Zone(node *corev1.Node) string { return node.Labels[corev1.LabelTopologyZone] }

// ZoneShares is the share of the cluster's CPUs that each zone has. It is nil if there are fewer than two zones, or if
// a node lacks its number of CPUs or its zone.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache.go, SetNodes
func ZoneShares(nodes iter.Seq[*corev1.Node]) map[string]float64 {
	shares, total := make(map[string]float64), 0.0
	for node := range nodes {
		if isControlPlane(node) || !NodeReady(node) {
			continue
		}
		cpu := float64(node.Status.Allocatable.Cpu().MilliValue())
		if Zone(node) == "" || cpu == 0 {
			return nil
		}
		shares[Zone(node)] += cpu
		total += cpu
	}
	if len(shares) < 2 {
		return nil
	}
	for zone := range shares {
		shares[zone] /= total
	}
	return shares
}

func isControlPlane(node *corev1.Node) bool {
	return metav1.HasLabel(node.ObjectMeta, "node-role.kubernetes.io/control-plane") ||
		metav1.HasLabel(node.ObjectMeta, "node-role.kubernetes.io/master")
}

// NodeReady reports whether the node's condition Ready is true.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
