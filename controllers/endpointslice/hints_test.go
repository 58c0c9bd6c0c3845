package endpointslice

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Nodes n1, n2, n3 are in the zones b, c, a.
//
// Source: k8s.io/endpointslice v0.37.2 trafficdist/trafficdist_test.go
func TestTrafficDistribution(t *testing.T) {
	unknown, zone := service(distribution("Everywhere")), service(distribution("PreferClose"))
	sameZone, sameNode := service(distribution("PreferSameZone")), service(distribution("PreferSameNode"))
	nowhere := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	for _, tt := range []struct {
		name   string
		svc    *corev1.Service
		pods   []*corev1.Pod
		slices existing
		want   string
	}{
		{"by zone", zone, podList(1, 2), nil, "create IPv4 :8080 p1@b p2@c"},
		{"by zone, new name", sameZone, podList(1, 2), nil, "create IPv4 :8080 p1@b p2@c"},
		{"by node", sameNode, podList(1, 2), nil, "create IPv4 :8080 p1@bn1 p2@cn2"},
		{"unknown", unknown, podList(1, 1), nil, "create IPv4 :8080 p1"},
		{"not ready: none", zone, podList(1, 1, unready), nil, "create IPv4 :8080 -p1"},
		{
			"no zone: none", service(distribution("PreferClose"), published), podList(1, 1, nowhere), nil,
			"create IPv4 :8080 p1",
		},
		{"nothing to do", zone, podList(1, 2), existing{slice(zone, "s", podList(1, 2))}, ""},
		{
			"switched on", zone, podList(1, 2),
			existing{slice(service(), "s", podList(1, 2))},
			"update s IPv4 :8080 p1@b p2@c",
		},
		{
			"switched off", service(), podList(1, 2),
			existing{slice(zone, "s", podList(1, 2))},
			"update s IPv4 :8080 p1 p2",
		},
		{
			"from zone to node", sameNode, podList(1, 1),
			existing{slice(zone, "s", podList(1, 1))},
			"update s IPv4 :8080 p1@bn1",
		},
		{
			"the annotation comes first", service(distribution("PreferClose"), topology), podList(1, 1), nil,
			"create IPv4 :8080 p1",
		},
	} {
		if got := plan(seen(tt.svc, tt.pods, tt.slices...)).writes(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
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
		if got := wantsTopology(service(func(s *corev1.Service) { s.Annotations = tt.annotations })); got != tt.want {
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
		if got := fmt.Sprint(zoneShares(slices.Values(tt.nodes))); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// Zones a, b and c have a third of the CPUs each; pods 1, 4, 7 … are in b, 2, 5 … in c, 3, 6 … in a.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache_test.go, TestAddHints
func TestTopologyHints(t *testing.T) {
	svc := service(topology)
	inB := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	for _, tt := range []struct {
		name   string
		pods   []*corev1.Pod
		slices existing
		want   string
		notice string
	}{
		{
			"balanced", podList(1, 3), nil, "create IPv4 :8080 p1@b p2@c p3@a",
			"Topology Aware Hints has been enabled, addressType: IPv4",
		},
		{
			"all in one zone: two are given away", podList(1, 3, inB), nil, "create IPv4 :8080 p1@a p2@c p3@b",
			"Topology Aware Hints has been enabled, addressType: IPv4",
		},
		{
			"too few", podList(1, 2), nil, "create IPv4 :8080 p1 p2",
			"Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4",
		},
		{
			"too few that are ready", append(podList(1, 2), pod(3, unready)), nil, "create IPv4 :8080 p1 p2 -p3",
			"Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4",
		},
		{
			"cannot be shared", podList(1, 4),
			existing{slice(svc, "s", podList(1, 3)), slice(svc, "t", podList(4, 4))},
			"update s IPv4 :8080 p1 p2 p3",
			"Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (4 " +
				"endpoints, 3 zones), addressType: IPv4",
		},
		{
			"nothing to do", podList(1, 3),
			existing{slice(svc, "s", podList(1, 3))},
			"",
			"Topology Aware Hints has been enabled, addressType: IPv4",
		},
		{
			"a slice that is kept counts", podList(1, 6),
			existing{slice(svc, "s", podList(1, 3))},
			"create IPv4 :8080 p4@b p5@c p6@a", "Topology Aware Hints has been enabled, addressType: IPv4",
		},
		{
			"a hint for a zone that is no more", podList(1, 3),
			existing{
				slice(svc, "s", podList(1, 3),
					func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hints.ForZones[0].Name = "z" }),
			},
			"update s IPv4 :8080 p1@b p2@c p3@a", "Topology Aware Hints has been enabled, addressType: IPv4",
		},
		{
			"a zone is missing",
			[]*corev1.Pod{pod(1), pod(2), pod(3, lost)},
			nil, "create IPv4 :8080 p1 p2",
			"Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4",
		},
	} {
		got := plan(seen(svc, tt.pods, tt.slices...))
		if got.writes() != tt.want || len(got.notices) != 1 || got.notices[0].message != tt.notice {
			t.Errorf("%s:\n%s\n%+v\nwant:\n%s\n%s", tt.name, got.writes(), got.notices, tt.want, tt.notice)
		}
		if enabled := got.notices[0].reason == "TopologyAwareHintsEnabled"; enabled != got.hinted ||
			enabled != (got.notices[0].kind == corev1.EventTypeNormal) {
			t.Errorf("%s: notice %+v, hinted %v", tt.name, got.notices[0], got.hinted)
		}
	}
}

// An endpoint that is published without a zone rules the hints out, also where it is in a slice that would be kept.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache.go, AddHints
func TestTopologyNeedsZones(t *testing.T) {
	svc := service(topology, published)
	pods := append(podList(1, 3), pod(4, lost), pod(5), pod(6))
	for _, list := range []existing{nil, {slice(svc, "s", podList(1, 3)), slice(svc, "t", pods[3:])}} {
		got := plan(seen(svc, pods, list...))
		if got.hinted || len(got.notices) != 1 ||
			got.notices[0].message != "One or more endpoints do not have a zone specified, addressType: IPv4" {
			t.Errorf("hinted %v, %+v", got.hinted, got.notices)
		}
		for _, b := range got.batches {
			for _, s := range slices.Concat(b.create, b.update, b.keep) {
				for _, e := range s.Endpoints {
					if e.Hints != nil {
						t.Errorf("hints %+v", e.Hints)
					}
				}
			}
		}
	}
}

// An event tells when hints by the zones' shares begin and end, not that they go on.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByAddressType
func TestTopologyNotices(t *testing.T) {
	o := seen(service(topology, dual), podList(1, 3))
	got := plan(o)
	if len(got.notices) != 1 || !got.hinted {
		t.Errorf("at first: %+v", got.notices)
	}
	o.hinted = true
	if got := plan(o); len(got.notices) != 0 || !got.hinted {
		t.Errorf("later: %+v", got.notices)
	}
	o.service = service(dual)
	if got := plan(o); len(got.notices) != 1 || got.hinted ||
		got.notices[0].message != "Topology Aware Hints has been disabled, addressType: IPv4" {
		t.Errorf("switched off: %+v", got.notices)
	}
	o.service, o.shares = service(topology), nil
	if got := plan(o); len(got.notices) != 1 || got.hinted || got.notices[0].message != insufficientNodeInfo+
		", addressType: IPv4" {
		t.Errorf("nodes unknown: %+v", got.notices)
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
