package shard

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// For any cluster name the lease has a valid name, and no two leases have the same name.
func TestNamesOfLeases(t *testing.T) {
	fleets := []string{"f", strings.Repeat("f", maxFleetLength)}
	names := []string{
		"a", "eu/shop", "eu-shop", "eu.shop", "EU/shop", "eu/shop/", "/", "", "-", "..", "ümläut", "中文",
		strings.Repeat("x", 300), strings.Repeat("x", 301),
		strings.Repeat("-", 300), "a/" + strings.Repeat("b.c/", 100), "1", "a b", "https://x:6443", "fleet-cluster-a",
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		name := make([]byte, random.IntN(400))
		for i := range name {
			name[i] = byte(random.IntN(256))
		}
		names = append(names, string(name))
	}
	seen := map[string]key{}
	for _, fleet := range fleets {
		for _, kind := range []kind{replicaLease, clusterLease} {
			for _, name := range names {
				k := key{kind, name}
				lease := leaseName(fleet, k)
				if wrong := validation.IsDNS1123Subdomain(lease); len(wrong) > 0 {
					t.Errorf("%q: lease %q: %v", name, lease, wrong)
				}
				if before, taken := seen[lease]; taken && before != k {
					t.Errorf("%+v and %+v both have lease %q", before, k, lease)
				}
				seen[lease] = k
			}
		}
	}
	if got := leaseName("fleet", key{clusterLease, "eu/shop"}); !strings.HasPrefix(got, "fleet-cluster-eu-shop-") {
		t.Errorf("lease %q does not show what it is for", got)
	}
}

func TestSessions(t *testing.T) {
	a, b := newSession("pod-0"), newSession("pod-0")
	if a == b || identityOf(a) != "pod-0" || identityOf(stuckHolder(a)) != "pod-0" || stuckHolder(a) == a {
		t.Errorf("sessions %q, %q", a, b)
	}
}
