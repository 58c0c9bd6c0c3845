package ranges

import "testing"

func TestAddressesAreDistinctAndComeBack(t *testing.T) {
	a := New()
	first, err := a.IP("IPv4", "")
	if err != nil || first != "10.96.0.16" {
		t.Fatalf("first address %q, %v", first, err)
	}
	second, err := a.IP("IPv4", "")
	if err != nil || second == first {
		t.Fatalf("second address %q, %v", second, err)
	}
	if _, err := a.IP("IPv4", first); err == nil {
		t.Error("a taken address was given again")
	}
	a.ReleaseIP(first)
	if again, err := a.IP("IPv4", ""); err != nil || again != first {
		t.Errorf("after a release: %q, %v, want %q", again, err, first)
	}
	for _, named := range []string{"10.96.0.1", "10.96.0.10"} {
		if got, err := a.IP("IPv4", named); err != nil || got != named {
			t.Errorf("reserved address %s: %q, %v", named, got, err)
		}
	}
	for _, bad := range []string{"10.96.0.0", "192.0.2.1", "fd00::1", "nonsense"} {
		if got, err := a.IP("IPv4", bad); err == nil {
			t.Errorf("address %s was given as %q", bad, got)
		}
	}
	if got, err := a.IP("IPv6", ""); err != nil || got != "fd00:10:96::10" {
		t.Errorf("IPv6 address %q, %v", got, err)
	}
	if _, err := a.IP("IPv5", ""); err == nil {
		t.Error("unknown range accepted")
	}
}

func TestPortsAreDistinctUntilTheRangeIsFull(t *testing.T) {
	a := New()
	for port := firstPort; port <= lastPort; port++ {
		got, err := a.Port("nodePort", 0)
		if err != nil || got != port {
			t.Fatalf("port %d, %v, want %d", got, err, port)
		}
	}
	if got, err := a.Port("nodePort", 0); err == nil {
		t.Errorf("a full range gave port %d", got)
	}
	if _, err := a.Port("nodePort", 30100); err == nil {
		t.Error("a taken port was given again")
	}
	a.ReleasePort("nodePort", 30100)
	if got, err := a.Port("nodePort", 30100); err != nil || got != 30100 {
		t.Errorf("released port: %d, %v", got, err)
	}
	if _, err := a.Port("nodePort", 80); err == nil {
		t.Error("a port outside the range was given")
	}
}
