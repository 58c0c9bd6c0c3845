package endpointslice

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
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

// If an endpoint is published without a zone, there are no hints, even if its slice would be kept.
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
			for _, s := range slices.Concat(b.Create, b.Update, b.keep) {
				for _, e := range s.Endpoints {
					if e.Hints != nil {
						t.Errorf("hints %+v", e.Hints)
					}
				}
			}
		}
	}
}

// An event is recorded when hints by the zones' shares begin and end, but not while they go on.
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
	if got := plan(o); len(got.notices) != 1 || got.hinted ||
		got.notices[0].message != "Insufficient Node information: allocatable CPU or zone not "+
			"specified on one or more nodes, addressType: IPv4" {
		t.Errorf("nodes unknown: %+v", got.notices)
	}
}
