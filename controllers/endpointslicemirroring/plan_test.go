package endpointslicemirroring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// made returns ns/web, made by hand.
func made(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", UID: "uid", Labels: map[string]string{"team": "a"},
			Annotations: map[string]string{"note": "x"},
		},
		Subsets: subsets,
	}
}

func withAnnotation(key, value string) *corev1.Endpoints {
	ep := made(at(80, "10.0.0.1"))
	ep.Annotations[key] = value
	return ep
}

func withLabel(key, value string) *corev1.Endpoints {
	ep := made(at(80, "10.0.0.1"))
	ep.Labels[key] = value
	return ep
}

// at returns a subset with one port. Addresses with a dash in front are not ready.
func at(port int32, ips ...string) corev1.EndpointSubset {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{
		{Name: fmt.Sprint("p", port), Port: port, Protocol: corev1.ProtocolTCP},
	}}
	for _, ip := range ips {
		if unready, is := strings.CutPrefix(ip, "-"); is {
			s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: unready})
		} else {
			s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
		}
	}
	return s
}

// withoutSelector is ns/web.
func withoutSelector() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
}

func withSelector(selector map[string]string) *corev1.Service {
	svc := withoutSelector()
	svc.Spec.Selector = selector
	return svc
}

// mirrorOf returns the slices that the controller makes of ep, named s0, s1, ….
func mirrorOf(ep *corev1.Endpoints) []*discoveryv1.EndpointSlice {
	created := plan(observed{endpoints: ep, service: withoutSelector(), maxPerSubset: maxPerSlice}).Create
	for i, s := range created {
		s.Name, s.UID, s.ResourceVersion = fmt.Sprint("s", i), types.UID(fmt.Sprint("s", i)), "1"
	}
	return created
}

func changed(s *discoveryv1.EndpointSlice, change func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s = s.DeepCopy()
	change(s)
	return s
}

// describe returns "IPv4 :80 10.0.0.1 -10.0.0.2", with a dash before endpoints that are not ready.
func describe(s *discoveryv1.EndpointSlice) string {
	words := []string{string(s.AddressType)}
	for _, p := range s.Ports {
		words = append(words, fmt.Sprintf(":%d", *p.Port))
	}
	for _, e := range s.Endpoints {
		words = append(words, map[bool]string{false: "-"}[*e.Conditions.Ready]+e.Addresses[0])
	}
	return strings.Join(words, " ")
}

// writes lists the writes in order.
func (c changes) writes() string {
	var lines []string
	for _, s := range c.Create {
		lines = append(lines, "create "+describe(s))
	}
	for _, s := range c.Update {
		lines = append(lines, "update "+s.Name+" "+describe(s))
	}
	for _, s := range c.Remove {
		lines = append(lines, "delete "+s.Name)
	}
	return strings.Join(lines, "\n")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler_test.go, TestReconcile, and
// endpointslicemirroring_controller_test.go, TestSyncEndpoints and TestShouldMirror
func TestPlan(t *testing.T) {
	simple := made(at(80, "10.0.0.1"))
	leaving := made(at(80, "10.0.0.1"))
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	leavingWithMore := made(at(80, "10.0.0.1", "10.0.0.2"), at(81, "10.0.0.2"))
	leavingWithMore.DeletionTimestamp = leaving.DeletionTimestamp
	successor := made(at(80, "10.0.0.1"))
	successor.UID = "successor"
	noPorts := made(corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}}})
	one, both := mirrorOf(simple)[0], mirrorOf(made(at(80, "10.0.0.1"), at(81, "10.0.0.2")))
	relabelled := changed(one, func(s *discoveryv1.EndpointSlice) { s.Labels["x"] = "y" })
	for _, tt := range []struct {
		name      string
		endpoints *corev1.Endpoints
		service   *corev1.Service // without a selector, if nil
		existing  []*discoveryv1.EndpointSlice
		want      string
	}{
		{name: "one subset", endpoints: simple, want: "create IPv4 :80 10.0.0.1"},
		{name: "no address is ready", endpoints: made(at(80, "-10.0.0.1")), want: "create IPv4 :80 -10.0.0.1"},
		{name: "no subset", endpoints: made()},
		{name: "no port", endpoints: noPorts, want: "create IPv4 10.0.0.1"},
		{
			name:      "two families",
			endpoints: made(at(80, "10.0.0.1", "fd00::1", "-fd00::2")),
			want:      "create IPv4 :80 10.0.0.1\ncreate IPv6 :80 fd00::1 -fd00::2",
		},
		{
			name:      "an address in another spelling",
			endpoints: made(at(80, "010.0.0.001", "::ffff:10.0.0.2", "FD00:0::1")),
			want:      "create IPv4 :80 10.0.0.1 10.0.0.2\ncreate IPv6 :80 fd00::1",
		},
		{
			name:      "subsets with the same ports are one",
			endpoints: made(at(80, "10.0.0.1"), at(80, "10.0.0.2")),
			want:      "create IPv4 :80 10.0.0.1 10.0.0.2",
		},
		{
			name:      "subsets with the same addresses are one",
			endpoints: made(at(80, "10.0.0.1"), at(81, "10.0.0.1")),
			want:      "create IPv4 :81 :80 10.0.0.1", // in the order of their hashes
		},
		{name: "a skip label", endpoints: withLabel("endpointslice.kubernetes.io/skip-mirror", "true")},
		{
			name: "a skip label of another value", endpoints: withLabel("endpointslice.kubernetes.io/skip-mirror", "1"),
			want: "create IPv4 :80 10.0.0.1",
		},
		{name: "a lock", endpoints: withAnnotation("control-plane.alpha.kubernetes.io/leader", "")},
		{
			name: "a selector", endpoints: simple, service: withSelector(map[string]string{"a": "b"}), existing: both,
			want: "delete s0\ndelete s1",
		},
		{name: "a selector for all pods", endpoints: simple, service: withSelector(map[string]string{})},
		{name: "nothing changed", endpoints: simple, existing: []*discoveryv1.EndpointSlice{one}},
		{
			name: "an address more", endpoints: made(at(80, "10.0.0.1", "10.0.0.2")),
			existing: []*discoveryv1.EndpointSlice{one}, want: "update s0 IPv4 :80 10.0.0.1 10.0.0.2",
		},
		{
			name: "not ready any more", endpoints: made(at(80, "-10.0.0.1")),
			existing: []*discoveryv1.EndpointSlice{one}, want: "update s0 IPv4 :80 -10.0.0.1",
		},
		{name: "no address any more", endpoints: made(), existing: both, want: "delete s0\ndelete s1"},
		{
			name: "other ports, in the slice of the old ones", endpoints: made(at(90, "10.0.0.1")), existing: both,
			want: "update s0 IPv4 :90 10.0.0.1\ndelete s1",
		},
		{
			name: "another family", endpoints: made(at(80, "fd00::1")), existing: []*discoveryv1.EndpointSlice{one},
			want: "create IPv6 :80 fd00::1\ndelete s0",
		},
		{
			name: "a label of somebody else", endpoints: simple, existing: []*discoveryv1.EndpointSlice{relabelled},
			want: "update s0 IPv4 :80 10.0.0.1",
		},
		{
			name: "a label of the slices' own", endpoints: withLabel("endpointslice.kubernetes.io/managed-by", "x"),
			want: "create IPv4 :80 10.0.0.1",
		},
		{
			name: "no owner", endpoints: simple,
			existing: []*discoveryv1.EndpointSlice{
				changed(one, func(s *discoveryv1.EndpointSlice) { s.OwnerReferences = nil }),
			},
			want: "update s0 IPv4 :80 10.0.0.1",
		},
		{
			name: "an earlier owner of the same name", endpoints: successor,
			existing: []*discoveryv1.EndpointSlice{one}, want: "update s0 IPv4 :80 10.0.0.1",
		},
		{
			name: "two slices of the same ports", endpoints: simple,
			existing: []*discoveryv1.EndpointSlice{
				changed(one, func(s *discoveryv1.EndpointSlice) { s.Name = "s9" }), one,
			},
			want: "delete s9",
		},
		{
			name: "a slice of names", endpoints: simple,
			existing: []*discoveryv1.EndpointSlice{
				one, changed(one, func(s *discoveryv1.EndpointSlice) {
					s.Name, s.AddressType = "fqdn", discoveryv1.AddressTypeFQDN
				}),
			},
			want: "delete fqdn",
		},
		{name: "being deleted", endpoints: leaving},
		{
			name: "being deleted, and changed", endpoints: leavingWithMore,
			existing: []*discoveryv1.EndpointSlice{one}, want: "update s0 IPv4 :80 10.0.0.1 10.0.0.2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.service == nil {
				tt.service = withoutSelector()
			}
			o := observed{endpoints: tt.endpoints, service: tt.service, slices: tt.existing, maxPerSubset: maxPerSlice}
			before := []any{o.endpoints.DeepCopy(), copies(o.slices)}
			got := plan(o)
			if got.writes() != tt.want {
				t.Errorf("writes\n%s\nwant\n%s", got.writes(), tt.want)
			}
			if !equality.Semantic.DeepEqual(before, []any{o.endpoints, o.slices}) {
				t.Error("an object of the cache was changed")
			}
			if tt.endpoints.DeletionTimestamp != nil {
				return
			}
			if again := plan(after(o, got)); again.writes() != "" {
				t.Errorf("the same again writes\n%s", again.writes())
			}
		})
	}
}

func copies(list []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for _, s := range list {
		all = append(all, s.DeepCopy())
	}
	return all
}

// after returns what is observed when the plan has been carried out.
func after(o observed, c changes) observed {
	gone := func(s *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slices.Concat(c.Update, c.Remove),
			func(w *discoveryv1.EndpointSlice) bool { return w.Name == s.Name })
	}
	kept := slices.DeleteFunc(slices.Clone(o.slices), gone)
	for i, s := range c.Create {
		s.Name = fmt.Sprint("new", i)
	}
	o.slices = slices.Concat(kept, c.Update, c.Create)
	return o
}

func TestPlanWithoutEndpointsOrService(t *testing.T) {
	ep := made(at(80, "10.0.0.1"))
	for name, o := range map[string]observed{
		"no Endpoints": {service: withoutSelector(), slices: mirrorOf(ep)},
		"no Service":   {endpoints: ep, slices: mirrorOf(ep)},
		"neither":      {slices: mirrorOf(ep)},
	} {
		if got := plan(o).writes(); got != "delete s0" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/utils_test.go, TestNewEndpointSlice and
// TestAddressToEndpoint
func TestContentOfASlice(t *testing.T) {
	ep := made(corev1.EndpointSubset{
		Addresses: []corev1.EndpointAddress{{
			IP: "10.0.0.1", Hostname: "h", NodeName: ptr.To("n"),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "p", UID: "p"},
		}},
		Ports: []corev1.EndpointPort{{Port: 80, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("h2c")}},
	})
	ep.Annotations["endpoints.kubernetes.io/last-change-trigger-time"] = "2026-01-01T00:00:00Z"
	ep.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
	ep.Labels["endpointslice.kubernetes.io/managed-by"] = "somebody"
	got := mirrorOf(ep)[0]
	got.Name, got.UID, got.ResourceVersion = "", "", ""
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", GenerateName: "web-",
			Labels: map[string]string{
				"team": "a", "kubernetes.io/service-name": "web",
				"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
			},
			Annotations: map[string]string{"note": "x"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Endpoints", Name: "web", UID: "uid", Controller: ptr.To(true),
				BlockOwnerDeletion: ptr.To(true),
			}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			Hostname: ptr.To("h"), NodeName: ptr.To("n"),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "p", UID: "p"},
		}},
		Ports: []discoveryv1.EndpointPort{{
			Name: ptr.To(""), Port: ptr.To[int32](80), Protocol: ptr.To(corev1.ProtocolTCP),
			AppProtocol: ptr.To("h2c"),
		}},
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Endpoints[0].TargetRef == ep.Subsets[0].Addresses[0].TargetRef {
		t.Error("the slice shares memory with the cache")
	}
}

// A slice that is rewritten keeps what others have set, apart from labels, annotations and owners. The write carries
// the version that was read, so it fails if somebody has written in between.
func TestRewrittenKeepsTheRest(t *testing.T) {
	old := mirrorOf(made(at(80, "10.0.0.1")))[0]
	old.Finalizers, old.Annotations = []string{"example.com/hold"}, map[string]string{"note": "y", "more": "z"}
	old.OwnerReferences[0].UID = "earlier"
	got := plan(observed{
		endpoints: made(at(80, "10.0.0.2")), service: withoutSelector(), maxPerSubset: 1,
		slices: []*discoveryv1.EndpointSlice{old},
	}).Update[0]
	if got.Name != "s0" || got.UID != "s0" || got.ResourceVersion != "1" || len(got.Finalizers) != 1 {
		t.Errorf("metadata %+v", got.ObjectMeta)
	}
	if !maps.Equal(got.Annotations, map[string]string{"note": "x"}) || len(got.OwnerReferences) != 1 ||
		got.OwnerReferences[0].UID != "uid" {
		t.Errorf("metadata %+v", got.ObjectMeta)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler_test.go, TestReconcile, the cases
// about maxEndpointsPerSubset and invalid addresses
func TestAddressesLeftOut(t *testing.T) {
	for _, tt := range []struct {
		name             string
		endpoints        *corev1.Endpoints
		want             string
		invalid, skipped int
	}{
		{
			name: "the limit", endpoints: made(at(80, "10.0.0.1", "10.0.0.2")),
			want: "create IPv4 :80 10.0.0.1 10.0.0.2",
		},
		{
			name: "ready ones come first", endpoints: made(at(80, "-10.0.0.1", "10.0.0.3", "10.0.0.2")),
			want: "create IPv4 :80 10.0.0.2 10.0.0.3", skipped: 1,
		},
		{
			name: "both families count", endpoints: made(at(80, "10.0.0.1", "-10.0.0.2", "fd00::1", "-fd00::2")),
			want: "create IPv4 :80 10.0.0.1\ncreate IPv6 :80 fd00::1", skipped: 2,
		},
		{
			name:      "each subset for itself",
			endpoints: made(at(80, "10.0.0.1", "10.0.0.2", "10.0.0.3"), at(81, "10.0.1.1", "10.0.1.2", "10.0.1.3")),
			want:      "create IPv4 :81 10.0.1.1 10.0.1.2\ncreate IPv4 :80 10.0.0.1 10.0.0.2", skipped: 2,
		},
		{
			name: "no address at all", endpoints: made(at(80, "1", "10.0.0.1", "-name")),
			want: "create IPv4 :80 10.0.0.1", invalid: 2, skipped: 2,
		},
		{
			name: "invalid, and too many", endpoints: made(at(80, "10.0.0.1", "1", "10.0.0.2", "10.0.0.3")),
			want: "create IPv4 :80 10.0.0.1 10.0.0.2", invalid: 1, skipped: 2,
		},
	} {
		got := plan(observed{endpoints: tt.endpoints, service: withoutSelector(), maxPerSubset: 2})
		if got.writes() != tt.want || got.invalid != tt.invalid || got.skipped != tt.skipped {
			t.Errorf("%s: %d invalid, %d skipped, writes\n%s\nwant\n%s", tt.name, got.invalid, got.skipped,
				got.writes(), tt.want)
		}
	}
}
