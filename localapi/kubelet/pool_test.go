package kubelet

import (
	"strings"
	"testing"
)

func TestPoolGoesRound(t *testing.T) {
	p, err := newPool("10.0.0.7/29") // .1 to .6
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 6 {
		a, err := p.take()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.String())
	}
	if want := "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6"; strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
	if a, err := p.take(); err == nil {
		t.Errorf("took %s of an exhausted range", a)
	}
	for ip := range p.taken {
		if s := ip.String(); s == "10.0.0.2" || s == "10.0.0.5" {
			p.release(ip)
		}
	}
	if a, _ := p.take(); a.String() != "10.0.0.2" {
		t.Errorf("took %s", a)
	}
	if a, _ := p.take(); a.String() != "10.0.0.5" {
		t.Errorf("took %s", a)
	}
}

func TestPoolRanges(t *testing.T) {
	for _, cidr := range []string{"", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/32", "fd00::/127"} {
		if _, err := newPool(cidr); err == nil {
			t.Errorf("%q accepted", cidr)
		}
	}
	p, err := newPool("fd00::/126") // no broadcast address
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fd00::1", "fd00::2", "fd00::3"} {
		if a, err := p.take(); err != nil || a.String() != want {
			t.Errorf("took %v, %v, want %s", a, err, want)
		}
	}
}
