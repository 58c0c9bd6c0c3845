package builtin

import (
	"fmt"
	"slices"
	"strings"
)

// allocator hands out 10.96.0.1, 10.96.0.2, … and the ports 30000, 30001, …
type allocator struct {
	ips   []string
	ports []int32
}

func newAllocator() *allocator { return &allocator{} }

func (a *allocator) IP(ipRange, want string) (string, error) {
	if ipRange != "IPv4" {
		return "", fmt.Errorf("no range %s", ipRange)
	}
	for i := 1; want == ""; i++ {
		if ip := fmt.Sprintf("10.96.0.%d", i); !slices.Contains(a.ips, ip) {
			want = ip
		}
	}
	if slices.Contains(a.ips, want) {
		return "", fmt.Errorf("provided IP is already allocated")
	}
	a.ips = append(a.ips, want)
	return want, nil
}

func (a *allocator) ReleaseIP(ip string) {
	a.ips = slices.DeleteFunc(a.ips, func(s string) bool { return s == ip })
}

func (a *allocator) Port(_ string, want int32) (int32, error) {
	for p := int32(30000); want == 0; p++ {
		if !slices.Contains(a.ports, p) {
			want = p
		}
	}
	switch {
	case want < 30000 || want > 32767:
		return 0, fmt.Errorf("provided port is not in the valid range. The range of valid ports is 30000-32767")
	case slices.Contains(a.ports, want):
		return 0, fmt.Errorf("provided port is already allocated")
	}
	a.ports = append(a.ports, want)
	return want, nil
}

func (a *allocator) ReleasePort(_ string, port int32) {
	a.ports = slices.DeleteFunc(a.ports, func(p int32) bool { return p == port })
}

// String lists what is taken.
func (a *allocator) String() string {
	ips, ports := slices.Sorted(slices.Values(a.ips)), slices.Sorted(slices.Values(a.ports))
	return strings.TrimSpace(fmt.Sprintf("taken: %v %v", ips, ports))
}
