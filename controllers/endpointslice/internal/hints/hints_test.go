package hints

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node returns the i-th node: ready, with one CPU, in zone a, b or c in turn.
func node(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%3))}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// Source: k8s.io/endpointslice v0.37.2 utils.go, hintsEnabled
func TestWantsTopology(t *testing.T) {
	const old = "service.kubernetes.io/topology-aware-hints"
	for _, tt := range []struct {
		annotations map[string]string
		want        bool
	}{
		{nil, false},
		{map[string]string{corev1.AnnotationTopologyMode: "Auto"}, true},
		{map[string]string{corev1.AnnotationTopologyMode: "auto"}, true},
		{map[string]string{corev1.AnnotationTopologyMode: "AUTO"}, false},
		{map[string]string{old: "auto"}, true},
		{map[string]string{old: "Disabled", corev1.AnnotationTopologyMode: "Auto"}, false},
	} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}}
		if got := WantsTopology(svc); got != tt.want {
			t.Errorf("%v: %v", tt.annotations, got)
		}
	}
}

// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache_test.go, TestSetNodes
func TestZoneShares(t *testing.T) {
	big := node(0)
	big.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("3")
	unready, unplaced, empty, master := node(1), node(1), node(1), node(1)
	unready.Status.Conditions[0].Status = corev1.ConditionUnknown
	unplaced.Labels = nil
	empty.Status.Allocatable = nil
	master.Labels["node-role.kubernetes.io/control-plane"] = ""
	for name, tt := range map[string]struct {
		nodes []*corev1.Node
		want  string
	}{
		"three zones": {
			[]*corev1.Node{big, node(1), node(2), node(5)},
			"map[a:0.5 b:0.16666666666666666 c:0.3333333333333333]",
		},
		"one zone":                {[]*corev1.Node{node(0), node(3)}, "map[]"},
		"not ready: left out":     {[]*corev1.Node{node(0), unready}, "map[]"},
		"control plane: left out": {[]*corev1.Node{node(0), node(2), master}, "map[a:0.5 c:0.5]"},
		"one without a zone":      {[]*corev1.Node{node(0), node(2), unplaced}, "map[]"},
		"one without CPUs":        {[]*corev1.Node{node(0), node(2), empty}, "map[]"},
		"none":                    {nil, "map[]"},
	} {
		if got := fmt.Sprint(ZoneShares(slices.Values(tt.nodes))); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache_test.go, TestAddHints, and utils_test.go,
// Test_getGivingAndReceivingZones
func TestAllocateAndSurplus(t *testing.T) {
	shares := map[string]float64{"a": 0.5, "b": 0.3, "c": 0.2}
	allocations, problem := allocate(shares, 10)
	if want := map[string]allocation{"a": {5, 6, 5}, "b": {3, 4, 3}, "c": {2, 3, 2}}; problem != "" ||
		len(allocations) != 3 {
		t.Fatalf("%v %q, want %v", allocations, problem, want)
	}
	for zone, a := range allocations {
		if a.minimum > a.maximum || a.desired < float64(a.minimum) {
			t.Errorf("zone %s: %+v", zone, a)
		}
	}
	for _, tt := range []struct {
		allocated map[string]int
		want      map[string]int
	}{
		{map[string]int{"a": 5, "b": 3, "c": 2}, map[string]int{}},
		{map[string]int{"a": 10}, map[string]int{"a": 5, "b": -3, "c": -2}},
		{map[string]int{"a": 4, "b": 4, "c": 2}, map[string]int{"a": -1, "b": 1}},
	} {
		if got := surplus(allocations, tt.allocated); !maps.Equal(got, tt.want) {
			t.Errorf("%v: surplus %v, want %v", tt.allocated, got, tt.want)
		}
	}
}
