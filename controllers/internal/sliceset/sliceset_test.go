package sliceset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/endpointslice v0.37.2 utils.go, getEndpointSlicePrefix
func TestNamePrefix(t *testing.T) {
	for name, want := range map[string]string{"web": "web-", strings.Repeat("a", 254): strings.Repeat("a", 254)} {
		if got := NamePrefix(name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPortsKey(t *testing.T) {
	port := func(name string, number int32, app *string) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{
			Name: &name, Port: &number, Protocol: ptr.To(corev1.ProtocolTCP), AppProtocol: app,
		}
	}
	a, b := port("a", 1, nil), port("b", 2, nil)
	if PortsKey([]discoveryv1.EndpointPort{a, b}) != PortsKey([]discoveryv1.EndpointPort{b, a}) {
		t.Error("the order of the ports matters")
	}
	sets := [][]discoveryv1.EndpointPort{
		nil, {a}, {b}, {a, b}, {port("a", 2, nil)}, {port("a", 1, ptr.To(""))}, {port("a", 1, ptr.To("h2c"))}, {{}},
	}
	seen := map[string]int{}
	for i, set := range sets {
		if other, found := seen[PortsKey(set)]; found {
			t.Errorf("sets %d and %d have the same key", other, i)
		}
		seen[PortsKey(set)] = i
	}
}

func endpoint(ip string, change ...func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		TargetRef: &corev1.ObjectReference{
			Kind: "Pod", Namespace: "ns", Name: "p" + ip, UID: "u", ResourceVersion: "1",
		},
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func unready(e *discoveryv1.Endpoint) { e.Conditions.Ready = ptr.To(false) }

func TestWanted(t *testing.T) {
	var w Wanted
	for _, e := range []discoveryv1.Endpoint{endpoint("1"), endpoint("2"), endpoint("3"), endpoint("1", unready)} {
		w.Add(e)
	}
	if w.Len() != 3 {
		t.Errorf("%d endpoints: the last was added before, in another state", w.Len())
	}
	if e, found := w.Take(ptr.To(endpoint("2", unready))); !found || !*e.Conditions.Ready {
		t.Errorf("took %v, %v: the wanted state counts, not the existing one", found, e)
	}
	if _, found := w.Take(ptr.To(endpoint("2"))); found {
		t.Error("the same endpoint was taken twice")
	}
	got := w.Fill([]discoveryv1.Endpoint{endpoint("0")}, 2)
	if len(got) != 2 || got[1].Addresses[0] != "1" || *got[1].Conditions.Ready || w.Len() != 1 {
		t.Errorf("filled up to %+v, %d left", got, w.Len())
	}
}

func TestWantedEquals(t *testing.T) {
	var w Wanted
	w.Add(endpoint("1"))
	w.Add(endpoint("2"))
	newer := func(e *discoveryv1.Endpoint) { e.TargetRef.ResourceVersion = "2" }
	onNode := func(e *discoveryv1.Endpoint) { e.NodeName = ptr.To("n") }
	for _, tt := range []struct {
		list []discoveryv1.Endpoint
		want bool
	}{
		{[]discoveryv1.Endpoint{endpoint("2"), endpoint("1")}, true},
		{[]discoveryv1.Endpoint{endpoint("1", newer), endpoint("2")}, true},
		{[]discoveryv1.Endpoint{endpoint("1", unready), endpoint("2")}, false},
		{[]discoveryv1.Endpoint{endpoint("1", onNode), endpoint("2")}, false},
		{[]discoveryv1.Endpoint{endpoint("1")}, false},
		{[]discoveryv1.Endpoint{endpoint("1"), endpoint("1")}, false},
		{[]discoveryv1.Endpoint{endpoint("1"), endpoint("2"), endpoint("3")}, false},
	} {
		if got := w.Equals(tt.list); got != tt.want {
			t.Errorf("%v: %v", tt.list, got)
		}
	}
	if w.Len() != 2 {
		t.Errorf("%d left: a comparison takes nothing", w.Len())
	}
}
