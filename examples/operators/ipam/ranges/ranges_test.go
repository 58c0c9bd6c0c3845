package ranges_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
)

func TestAt(t *testing.T) {
	for _, c := range []struct{ cidr, offset, want string }{
		{"10.0.0.0/24", "0", "10.0.0.0"},
		{"10.0.0.0/24", "5", "10.0.0.5"},
		{"10.0.0.7/24", "5", "10.0.0.5"},
		{"10.0.0.0/16", "258", "10.0.1.2"},
		{"10.0.0.0/24", "256", ""},
		{"255.255.255.0/24", "300", ""},
		{"255.255.255.0/24", "4294967295", ""},
		{"10.0.0.0/24", "-1", ""},
		{"10.0.0.0/24", "+1", ""},
		{"10.0.0.0/24", "", ""},
		{"10.0.0.0/24", "a", ""},
		{"10.0.0.0/24", "99999999999999999999999", ""},
		{"10.0.0.0/24", strings.Repeat("9", 100), ""},
		{"fd00::/64", "16", "fd00::10"},
		{"fd00::/64", "18446744073709551615", "fd00::ffff:ffff:ffff:ffff"},
		{"fd00::/64", "18446744073709551616", ""},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120", "256", ""},
	} {
		cidr, err := ranges.Parse(c.cidr)
		if err != nil {
			t.Fatal(err)
		}
		ip, ok := ranges.At(cidr, c.offset)
		if ok != (c.want != "") || ok && ip.String() != c.want || !ok && ip.IsValid() {
			t.Errorf("%s at %q: %v, %v; want %q", c.cidr, c.offset, ip, ok, c.want)
		}
	}
}

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		cidr, first, last string
		count             int32
	}{
		{"10.0.0.0/24", "10.0.0.1", "10.0.0.254", 254},
		{"10.0.0.0/30", "10.0.0.1", "10.0.0.2", 2},
		{"10.0.0.0/31", "10.0.0.0", "10.0.0.1", 2},
		{"10.0.0.9/32", "10.0.0.9", "10.0.0.9", 1},
		{"0.0.0.0/0", "0.0.0.1", "255.255.255.254", 2147483647},
		{"fd00::/97", "fd00::1", "fd00::7fff:fffe", 2147483647},
		{"fd00::/98", "fd00::1", "fd00::3fff:fffe", 1<<30 - 2},
		{"fd00::/64", "fd00::1", "fd00::ffff:ffff:ffff:fffe", 2147483647},
	} {
		cidr, err := ranges.Parse(c.cidr)
		if err != nil {
			t.Fatal(err)
		}
		first, last, count := ranges.Usable(cidr)
		if first.String() != c.first || last.String() != c.last || count != c.count {
			t.Errorf("%s: %v to %v, %d; want %+v", c.cidr, first, last, count, c)
		}
	}
}

// Source: TestDivideRangeBySize of whereabouts v0.0.4, the first three.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		cidr, size, wrong string
		count             int
		second            string
	}{
		{cidr: "10.0.0.0/8", size: "/8", count: 1},
		{cidr: "10.0.0.0/8", size: "/10", count: 4, second: "10.64.0.0/10"},
		{cidr: "10.0.0.0/10", size: "8", wrong: "larger than the range"},
		{cidr: "10.0.0.0/8", size: "24", count: 65536, second: "10.0.1.0/24"},
		{cidr: "10.0.0.0/8", size: "25", wrong: "more than 65536"},
		{cidr: "fd00::/32", size: "64", wrong: "more than 65536"},
		{cidr: "fd00::/48", size: "64", count: 65536, second: "fd00:0:0:1::/64"},
		{cidr: "10.0.0.1/24", size: "26", wrong: "does not begin at its network address"},
		{cidr: "10.0.0.0/24", size: "33", wrong: "no prefix length"},
		{cidr: "10.0.0.0/24", size: "-1", wrong: "no prefix length"},
		{cidr: "10.0.0.0/24", size: "", wrong: "no prefix length"},
		{cidr: "10.0.0.0", size: "26", wrong: "no range"},
	} {
		s, err := ranges.Cut(c.cidr, c.size)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s by %s: %v, want %q", c.cidr, c.size, err, c.wrong)
			}
			continue
		}
		if err != nil || s.Len() != c.count || c.second != "" && s.At(1).String() != c.second {
			t.Errorf("%s by %s: %d of them, the second %v, %v", c.cidr, c.size, s.Len(), s.At(1), err)
			continue
		}
		for i := range s.Len() {
			part := s.At(i)
			if n, ok := s.Parse(part.String()); !ok || n != i {
				t.Fatalf("%v is slice %d, not %d", part, n, i)
			}
			if n, ok := s.Of(ranges.Last(part)); !ok || n != i {
				t.Fatalf("the last of %v is in slice %d", part, n)
			}
		}
	}
	s, _ := ranges.Cut("10.0.0.0/24", "26")
	for _, no := range []string{"10.0.0.0/25", "10.0.1.0/26", "10.0.0.1/26", "fd00::/26", "x"} {
		if n, ok := s.Parse(no); ok {
			t.Errorf("%s is slice %d", no, n)
		}
	}
}

func TestContaining(t *testing.T) {
	all := ranges.Containing(netip.MustParsePrefix("192.168.0.0/16"))
	if len(all) != 17 || all[0].String() != "0.0.0.0/0" || all[8].String() != "192.0.0.0/8" ||
		all[16].String() != "192.168.0.0/16" {
		t.Errorf("%v", all)
	}
}

func FuzzAt(f *testing.F) {
	f.Add("10.0.0.0/24", "5")
	f.Add("fd00::/64", "16")
	f.Fuzz(func(t *testing.T, cidr, offset string) {
		p, err := ranges.Parse(cidr)
		if err != nil {
			return
		}
		if ip, ok := ranges.At(p, offset); ok && !p.Contains(ip) {
			t.Errorf("%v is not in %v", ip, p)
		}
	})
}
