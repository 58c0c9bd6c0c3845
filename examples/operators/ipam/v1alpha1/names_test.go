package v1alpha1_test

import (
	"net/netip"
	"testing"

	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
)

func TestReservationNames(t *testing.T) {
	for _, c := range []struct{ network, ip, want string }{
		{"", "10.0.0.5", "10.0.0.5"},
		{"net", "10.0.0.5", "net-10.0.0.5"},
		{"", "fd00::5", "fd00--5"},
		{"a-b", "fd00::", "a-b-fd00--0"},
	} {
		ip := netip.MustParseAddr(c.ip)
		if got := v1alpha1.ReservationName(c.network, ip); got != c.want {
			t.Errorf("%+v: %s", c, got)
		} else if !v1alpha1.ReservationFor(got, c.network, ip) {
			t.Errorf("%s is not for %s", got, ip)
		}
	}
	for _, c := range []struct {
		name, network, ip string
		want              bool
	}{
		{"net-10.0.0.5", "", "10.0.0.5", true},
		{"net-10.0.0.5", "net", "10.0.0.5", true},
		{"net-10.0.0.5", "other", "10.0.0.5", false},
		{"a-b-fd00--5", "a-b", "fd00::5", true},
		{"a-b-fd00--5", "", "fd00::5", false}, // it may be a:b:fd00::5
		{"fd00-0-0-0-0-0-0-5", "", "fd00::5", true},
		{"10.0.0.15", "", "10.0.0.5", false},
		{"net-10.0.0.15", "", "0.0.0.5", false},
		{"110.0.0.5", "", "10.0.0.5", false},
		{"2001-db8--1", "", "db8::1", false}, // it may be 2001:db8::1
		{"2001-db8--1", "2001", "db8::1", true},
		{"nonsense", "", "10.0.0.5", false},
		{"", "", "10.0.0.5", false},
	} {
		if got := v1alpha1.ReservationFor(c.name, c.network, netip.MustParseAddr(c.ip)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestPoolNames(t *testing.T) {
	for _, c := range []struct{ network, cidr, node, want string }{
		{"", "10.0.0.0/8", "", "10.0.0.0-8"},
		{"net", "10.0.0.0/8", "", "net-10.0.0.0-8"},
		{"net", "fd00::/64", "node-1", "net-fd00--0-64-node-1"},
		{"", "10.0.0.0/8", "10.0.0.0-8", "10.0.0.0-8-10.0.0.0-8"},
	} {
		name := v1alpha1.PoolName(c.network, c.cidr, c.node)
		network, node := v1alpha1.NetworkAndNode(name, c.cidr)
		if name != c.want || network != c.network || node != c.node {
			t.Errorf("%+v: %s, which is %q and %q", c, name, network, node)
		}
	}
	for _, name := range []string{"p", "10.0.0.0-80", "x10.0.0.0-8"} {
		if network, node := v1alpha1.NetworkAndNode(name, "10.0.0.0/8"); network != "" || node != "" {
			t.Errorf("%s is of %q and %q", name, network, node)
		}
	}
}

// A copy shares nothing with what it was made of.
func TestDeepCopies(t *testing.T) {
	pool := &v1alpha1.IPPool{
		Spec: v1alpha1.IPPoolSpec{Allocations: map[string]v1alpha1.IPAllocation{"1": {PodRef: "a/b"}}},
	}
	pool.Status.AllocatedIPs = []v1alpha1.AllocatedIP{{IP: "1"}}
	list := &v1alpha1.IPPoolList{Items: []v1alpha1.IPPool{*pool}}
	c := list.DeepCopyObject().(*v1alpha1.IPPoolList)
	delete(c.Items[0].Spec.Allocations, "1")
	c.Items[0].Status.AllocatedIPs[0].IP = "2"
	if len(pool.Spec.Allocations) != 1 || pool.Status.AllocatedIPs[0].IP != "1" {
		t.Errorf("%+v", pool)
	}
}
